package kubernetes

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/miekg/dns"
)

func TestNameServers(t *testing.T) {
	const soa = "authority cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. SERIAL 7200 1800 86400 5"
	const dnsSlice = `
kind: EndpointSlice
metadata: {name: kube-dns-1, namespace: shop, labels: {kubernetes.io/service-name: kube-dns}}
ports: [{name: dns, protocol: UDP, port: 53}]
endpoints: [{addresses: [192.0.2.53]}, {addresses: [192.0.2.54]}]`
	const dnsService = `
kind: Service
metadata: {name: kube-dns, namespace: shop}
spec: {clusterIPs: [10.96.0.10, "fd00:96::10"], ports: [{name: dns, protocol: UDP, port: 53}]}`
	const headless = `
kind: Service
metadata: {name: peers, namespace: shop}
spec: {clusterIP: None}`
	const headlessSlice = `
kind: EndpointSlice
metadata: {name: peers-1, namespace: shop, labels: {kubernetes.io/service-name: peers}}
endpoints: [{addresses: [192.0.2.53], hostname: one}]`
	const hidden = `
kind: EndpointSlice
metadata: {name: secret-1, namespace: hidden, labels: {kubernetes.io/service-name: secret}}
endpoints: [{addresses: [192.0.2.53]}]`
	for _, tc := range []struct {
		what          string
		objects       []string
		local         []string
		ns, a, aaaa   string
		reverseTarget string
	}{
		{"outside of the cluster", nil, []string{"192.0.2.53", "2001:db8::53"},
			"NOERROR aa\ncluster.local. 5 NS ns.dns.cluster.local.\nadditional ns.dns.cluster.local. 5 A 192.0.2.53\nadditional ns.dns.cluster.local. 5 AAAA 2001:db8::53",
			"NOERROR aa\nns.dns.cluster.local. 5 A 192.0.2.53", "NOERROR aa\nns.dns.cluster.local. 5 AAAA 2001:db8::53", "ns.dns.cluster.local."},
		{"as an endpoint of a service", []string{dnsService, dnsSlice}, []string{"192.0.2.53", "2001:db8::53"},
			"NOERROR aa\ncluster.local. 5 NS kube-dns.shop.svc.cluster.local.\nadditional kube-dns.shop.svc.cluster.local. 5 A 10.96.0.10\nadditional kube-dns.shop.svc.cluster.local. 5 AAAA fd00:96::10",
			"NOERROR aa\nns.dns.cluster.local. 5 A 10.96.0.10", "NOERROR aa\nns.dns.cluster.local. 5 AAAA fd00:96::10", "kube-dns.shop.svc.cluster.local."},
		{"at both endpoints of one", []string{dnsService, dnsSlice}, []string{"192.0.2.53", "192.0.2.54"},
			"NOERROR aa\ncluster.local. 5 NS kube-dns.shop.svc.cluster.local.\nadditional kube-dns.shop.svc.cluster.local. 5 A 10.96.0.10\nadditional kube-dns.shop.svc.cluster.local. 5 AAAA fd00:96::10",
			"NOERROR aa\nns.dns.cluster.local. 5 A 10.96.0.10", "NOERROR aa\nns.dns.cluster.local. 5 AAAA fd00:96::10", "kube-dns.shop.svc.cluster.local."},
		{"of a headless one", []string{headless, headlessSlice}, []string{"192.0.2.53"},
			"NOERROR aa\ncluster.local. 5 NS one.peers.shop.svc.cluster.local.\nadditional one.peers.shop.svc.cluster.local. 5 A 192.0.2.53",
			"NOERROR aa\nns.dns.cluster.local. 5 A 192.0.2.53", "NOERROR aa\n" + soa, "one.peers.shop.svc.cluster.local."},
		{"of both", []string{headless, headlessSlice, dnsService, dnsSlice}, []string{"192.0.2.53"},
			"NOERROR aa\ncluster.local. 5 NS kube-dns.shop.svc.cluster.local.\ncluster.local. 5 NS one.peers.shop.svc.cluster.local.\n" +
				"additional kube-dns.shop.svc.cluster.local. 5 A 10.96.0.10\nadditional kube-dns.shop.svc.cluster.local. 5 AAAA fd00:96::10\nadditional one.peers.shop.svc.cluster.local. 5 A 192.0.2.53",
			"NOERROR aa\nns.dns.cluster.local. 5 A 10.96.0.10\nns.dns.cluster.local. 5 A 192.0.2.53", "NOERROR aa\nns.dns.cluster.local. 5 AAAA fd00:96::10", ""},
		{"of one that is not seen", []string{hidden}, []string{"192.0.2.53"},
			"NOERROR aa\ncluster.local. 5 NS ns.dns.cluster.local.\nadditional ns.dns.cluster.local. 5 A 192.0.2.53",
			"NOERROR aa\nns.dns.cluster.local. 5 A 192.0.2.53", "NOERROR aa\n" + soa, "ns.dns.cluster.local."},
		{"without an address", nil, nil, "NOERROR aa\n" + soa, "NOERROR aa\n" + soa, "NOERROR aa\n" + soa, ""},
	} {
		k := serving(t, "kubernetes cluster.local in-addr.arpa")
		for _, o := range tc.objects {
			put(t, storeOf(k), o)
		}
		var local []netip.Addr
		for _, a := range tc.local {
			local = append(local, netip.MustParseAddr(a))
		}
		k.shared.local.Store(&local)
		for _, q := range []struct {
			qname string
			typ   uint16
			want  string
		}{{"cluster.local.", dns.TypeNS, tc.ns}, {"ns.dns.cluster.local.", dns.TypeA, tc.a}, {"ns.dns.cluster.local.", dns.TypeAAAA, tc.aaaa}} {
			if got := describe(ask(t, k, q.qname, q.typ)); got != q.want {
				t.Errorf("%s: %s\n got %s\nwant %s", tc.what, questionText(q.qname, q.typ), indent(got), indent(q.want))
			}
			if got, ok := viaBackend(t, k, q.qname, q.typ); !ok || got != q.want {
				t.Errorf("%s: %s via the backend\n got %s\nwant %s", tc.what, questionText(q.qname, q.typ), indent(got), indent(q.want))
			}
		}
		if m := ask(t, k, "in-addr.arpa.", dns.TypeNS); tc.reverseTarget != "" && (len(m.Answer) != 1 || m.Answer[0].(*dns.NS).Ns != tc.reverseTarget) {
			t.Errorf("%s: name servers of the reverse zone: %v", tc.what, m.Answer)
		}
	}
}

func TestUsableAddresses(t *testing.T) {
	machine := func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1"), netip.MustParseAddr("2001:db8::1")}
	}
	for _, tc := range []struct {
		bound []string
		want  string
	}{
		{nil, "[192.0.2.1 2001:db8::1]"},
		{[]string{""}, "[192.0.2.1 2001:db8::1]"},
		{[]string{"127.0.0.1", "::1"}, "[192.0.2.1 2001:db8::1]"},
		{[]string{"192.0.2.7"}, "[192.0.2.7]"},
		{[]string{"192.0.2.7/24", "192.0.2.7", "127.0.0.1"}, "[192.0.2.7]"},
		{[]string{"fe80::7%eth0", "10.1.2.3"}, "[10.1.2.3]"},
		{[]string{"::ffff:10.1.2.3"}, "[10.1.2.3]"},
	} {
		if got := fmt.Sprint(usable(tc.bound, machine)); got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.bound, got, tc.want)
		}
	}
	k := New([]string{"cluster.local."})
	k.shared.config = &dnsserver.Config{ListenHosts: []string{"192.0.2.9"}}
	if got := fmt.Sprint(k.shared.localAddrs()); got != "[192.0.2.9]" {
		t.Errorf("of a block with bind: %s", got)
	}
}
