package kubernetes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// services writes services as text.
func servicesText(sx []msg.Service) string {
	var all []string
	for _, s := range sx {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %s %d", s.Host, s.Port, s.Key, s.TTL)))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func TestExternal(t *testing.T) {
	const key = "/c/org/example/shop/"
	const cart = "192.0.2.10 53 " + key + "cart 5; 192.0.2.10 53 " + key + "cart 5; 192.0.2.10 80 " + key + "cart 5; 2001:db8::10 53 " + key + "cart 5; 2001:db8::10 53 " + key + "cart 5; 2001:db8::10 80 " + key + "cart 5"
	for _, tc := range []struct {
		qname    string
		headless bool
		rcode    int
		want     string
	}{
		{"cart.shop.example.org.", false, dns.RcodeSuccess, cart},
		{"cart.SHOP.example.org.", true, dns.RcodeSuccess, cart},
		{"_http._tcp.cart.shop.example.org.", false, dns.RcodeSuccess, "192.0.2.10 80 " + key + "cart 5; 2001:db8::10 80 " + key + "cart 5"},
		{"_http._udp.cart.shop.example.org.", false, dns.RcodeNameError, ""},
		{"http.cart.shop.example.org.", false, dns.RcodeSuccess, "192.0.2.10 80 " + key + "cart 5; 2001:db8::10 80 " + key + "cart 5"},
		{"none.cart.shop.example.org.", false, dns.RcodeNameError, ""},
		{"x.cart.shop.example.org.", true, dns.RcodeNameError, ""},
		{"balanced.shop.example.org.", false, dns.RcodeSuccess, "203.0.113.9 443 " + key + "balanced 5; 203.0.113.9 80 " + key + "balanced 5; lb.example.org 443 " + key + "balanced 5; lb.example.org 80 " + key + "balanced 5"},
		{"empty.shop.example.org.", false, dns.RcodeNameError, ""},
		{"elsewhere.shop.example.org.", false, dns.RcodeNameError, ""},
		{"shop.example.org.", false, dns.RcodeSuccess, ""},
		{"nowhere.example.org.", false, dns.RcodeNameError, ""},
		{"hidden.example.org.", false, dns.RcodeNameError, ""},
		{"example.org.", false, dns.RcodeNameError, ""},
		{"a.b.c.d.e.example.org.", false, dns.RcodeNameError, ""},
		{"cart.shop.example.net.", false, dns.RcodeNameError, ""},
		{"db.shop.example.org.", false, dns.RcodeNameError, ""},
		{"db-0.db.shop.example.org.", true, dns.RcodeSuccess, "10.244.20.1 5432 " + key + "db/db-0 5; 10.244.20.1 5432 " + key + "db/db-0 5; fd00:244::14:1 5432 " + key + "db/db-0 5"},
		{"_a._tcp.two.shop.example.org.", true, dns.RcodeSuccess, "10.244.30.1 1000 " + key + "two/10-244-30-1 5; 10.244.30.2 1001 " + key + "two/10-244-30-2 5"},
		{"gone.shop.example.org.", true, dns.RcodeNameError, ""},
	} {
		k := serving(t, "kubernetes cluster.local")
		state := from("192.0.2.1", tc.qname)
		state.Zone = "example.org."
		sx, rcode := k.External(state, tc.headless)
		if got := servicesText(sx); got != tc.want || rcode != tc.rcode {
			t.Errorf("%s headless %t:\n got %s %s\nwant %s %s", tc.qname, tc.headless, dns.RcodeToString[rcode], got, dns.RcodeToString[tc.rcode], tc.want)
		}
	}
}

func TestExternalServices(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	sx, headless := k.ExternalServices("example.org.", true)
	if len(sx) != 6+4 {
		t.Errorf("got %s", servicesText(sx))
	}
	names := slices.Sorted(maps.Keys(headless))
	if !slices.Equal(names, []string{"db.shop.example.org.", "plain.shop.example.org.", "two.shop.example.org."}) || len(headless["db.shop.example.org."]) != 6 {
		t.Errorf("got %q, %s", names, servicesText(headless["db.shop.example.org."]))
	}
	if _, headless := k.ExternalServices("example.org.", false); len(headless) != 0 {
		t.Errorf("got %v", headless)
	}
	k = serving(t, "kubernetes cluster.local {\nnamespaces lab\n}")
	if sx, headless := k.ExternalServices("example.org.", true); len(sx)+len(headless) != 0 {
		t.Errorf("of namespaces that are not exposed: %v, %v", sx, headless)
	}
	if _, rcode := k.External(request.Request{Req: new(dns.Msg).SetQuestion("cart.shop.example.org.", dns.TypeA), Zone: "example.org."}, false); rcode != dns.RcodeNameError {
		t.Errorf("got %d", rcode)
	}
}

// A headless service with external addresses is reached by these, as its PTR records say; its endpoints keep their names.
func TestExternalOfHeadless(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	put(t, storeOf(k), `kind: Service
metadata: {name: reached, namespace: shop}
spec: {clusterIPs: [None], externalIPs: [192.0.2.99], ports: [{name: http, port: 80, protocol: TCP}]}
---
kind: EndpointSlice
metadata: {name: reached-1, namespace: shop, labels: {kubernetes.io/service-name: reached}}
addressType: IPv4
endpoints: [{addresses: [10.244.40.1], hostname: one}]
ports: [{name: http, port: 8080, protocol: TCP}]`)
	const key = "/c/org/example/shop/reached"
	const service, end = "192.0.2.99 80 " + key + " 5", "10.244.40.1 8080 " + key + "/one 5"
	for _, tc := range []struct {
		qname    string
		headless bool
		want     string
	}{
		{"reached.shop.example.org.", false, service},
		{"reached.shop.example.org.", true, service},
		{"_http._tcp.reached.shop.example.org.", false, service},
		{"_http._tcp.reached.shop.example.org.", true, service},
		{"_dns._tcp.reached.shop.example.org.", true, ""},
		{"one.reached.shop.example.org.", true, end},
		{"one.reached.shop.example.org.", false, ""},
		{"two.reached.shop.example.org.", true, ""},
	} {
		state := from("192.0.2.1", tc.qname)
		state.Zone = "example.org."
		sx, rcode := k.External(state, tc.headless)
		if got := servicesText(sx); got != tc.want || (rcode == dns.RcodeSuccess) != (tc.want != "") {
			t.Errorf("%s headless %t: got %s %q, want %q", tc.qname, tc.headless, dns.RcodeToString[rcode], got, tc.want)
		}
	}
	for _, headless := range []bool{false, true} {
		sx, ends := k.ExternalServices("example.org.", headless)
		if !strings.Contains(servicesText(sx), service) {
			t.Errorf("headless %t: a transfer has no %q, only %s", headless, service, servicesText(sx))
		}
		if got := servicesText(ends["reached.shop.example.org."]); headless && got != end || !headless && got != "" {
			t.Errorf("headless %t: a transfer has endpoints %q", headless, got)
		}
	}
}

func TestExternalReverse(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	for ip, want := range map[string]string{"192.0.2.10": "cart.shop", "2001:db8::10": "cart.shop", "203.0.113.9": "balanced.shop", "10.96.10.1": "", "nonsense": ""} {
		sx, err := k.ExternalReverse(ip)
		if want == "" {
			if !k.IsNameError(err) || sx != nil {
				t.Errorf("%s: got %v, %v", ip, sx, err)
			}
			continue
		}
		if err != nil || len(sx) != 1 || sx[0].Host != want || sx[0].TTL != 5 {
			t.Errorf("%s: got %v, %v", ip, sx, err)
		}
	}
	k = serving(t, "kubernetes cluster.local {\nnamespaces lab\n}")
	if sx, err := k.ExternalReverse("192.0.2.10"); err == nil {
		t.Errorf("of a namespace that is not exposed: %v", sx)
	}
}

func TestExternalSpan(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	for prefix, want := range map[string]bool{"192.0.2.0/24": true, "2001:db8::/36": true, "203.0.0.0/8": true, "10.96.0.0/16": false, "192.0.3.0/24": false} {
		if got := k.ExternalSpan(netip.MustParsePrefix(prefix)); got != want {
			t.Errorf("%s: %v, want %v", prefix, got, want)
		}
	}
	k = serving(t, "kubernetes cluster.local {\nnamespaces lab\n}")
	if k.ExternalSpan(netip.MustParsePrefix("192.0.2.0/24")) {
		t.Error("of a namespace that is not exposed")
	}
	if new(Kubernetes).ExternalSpan(netip.MustParsePrefix("192.0.2.0/24")) {
		t.Error("of none")
	}
}

func TestExternalAddress(t *testing.T) {
	text := func(rrs []dns.RR) string {
		var all []string
		for _, rr := range rrs {
			all = append(all, strings.Join(strings.Fields(rr.String()), " "))
		}
		return strings.Join(all, "; ")
	}
	k := serving(t, "kubernetes cluster.local")
	state := from("192.0.2.1", "ns1.dns.example.org.")
	if got := text(k.ExternalAddress(state, false)); got != "ns1.dns.example.org. 5 IN A 192.0.2.53" {
		t.Errorf("outside of the cluster: %s", got)
	}
	put(t, storeOf(k), "kind: EndpointSlice\nmetadata: {name: cart-dns, namespace: shop, labels: {kubernetes.io/service-name: cart}}\nendpoints: [{addresses: [192.0.2.53]}]")
	if got := text(k.ExternalAddress(state, false)); got != "ns1.dns.example.org. 5 IN A 192.0.2.10; ns1.dns.example.org. 5 IN AAAA 2001:db8::10" {
		t.Errorf("of a service: %s", got)
	}
	put(t, storeOf(k), "kind: EndpointSlice\nmetadata: {name: db-dns, namespace: shop, labels: {kubernetes.io/service-name: db}}\nendpoints: [{addresses: [192.0.2.53]}]")
	if got := text(k.ExternalAddress(state, true)); !strings.Contains(got, "A 192.0.2.53") || !strings.Contains(got, "A 192.0.2.10") {
		t.Errorf("with headless: %s", got)
	}
	before := k.ExternalSerial("example.org.")
	put(t, storeOf(k), "kind: Service\nmetadata: {name: ext, namespace: shop}\nspec: {clusterIP: 10.96.9.9, externalIPs: [192.0.2.44]}")
	if after := k.ExternalSerial("example.org."); after <= before || before == 0 {
		t.Errorf("serial %d, then %d", before, after)
	}
	internal := k.Serial(request.Request{Zone: "cluster.local."})
	put(t, storeOf(k), "kind: Service\nmetadata: {name: int, namespace: shop}\nspec: {clusterIP: 10.96.9.8}")
	if external := k.ExternalSerial(""); k.Serial(request.Request{Zone: "cluster.local."}) <= internal || external > before+1 {
		t.Errorf("serials %d, %d", internal, external)
	}
}
