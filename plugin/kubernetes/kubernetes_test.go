package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

var (
	_ plugin.Handler     = Kubernetes{}
	_ plugin.WireHandler = (*Kubernetes)(nil)
	_ Upstreamer         = (*upstream.Upstream)(nil)
)

// TestUnsynced asks while the cluster is being read: what is known is answered, and nothing is denied.
func TestUnsynced(t *testing.T) {
	k := configured(t, "kubernetes cluster.local in-addr.arpa {\nfallthrough\npods insecure\n}")
	put(t, storeOf(k), "kind: Namespace\nmetadata: {name: shop}\n---\nkind: Service\nmetadata: {name: early, namespace: shop}\nspec: {clusterIP: 10.96.0.1}\n---\n"+
		"kind: Service\nmetadata: {name: alias, namespace: shop}\nspec: {type: ExternalName, externalName: late.shop.svc.cluster.local}")
	if k.Ready() {
		t.Error("ready before all was read")
	}
	const soa = "authority cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. SERIAL 7200 1800 86400 5"
	for _, tc := range []struct {
		qname string
		typ   uint16
		want  string
	}{
		{"early.shop.svc.cluster.local.", dns.TypeA, "NOERROR aa\nearly.shop.svc.cluster.local. 5 A 10.96.0.1"},
		{"late.shop.svc.cluster.local.", dns.TypeA, "SERVFAIL aa\n" + soa},
		{"late.shop.svc.cluster.local.", dns.TypeTXT, "SERVFAIL aa\n" + soa},
		{"alias.shop.svc.cluster.local.", dns.TypeA, "SERVFAIL aa\n" + soa},
		{"late.svc.cluster.local.", dns.TypeA, "SERVFAIL aa\n" + soa},
		{"svc.cluster.local.", dns.TypeA, "NOERROR aa\n" + soa},
		{"1-2-3-4.late.pod.cluster.local.", dns.TypeA, "SERVFAIL aa\n" + soa},
		{"cluster.local.", dns.TypeSOA, "NOERROR aa\n" + strings.TrimPrefix(soa, "authority ")},
		{"2.0.96.10.in-addr.arpa.", dns.TypePTR, "SERVFAIL aa\n" + strings.NewReplacer("cluster.local", "in-addr.arpa").Replace(soa)},
		{"example.org.", dns.TypeA, passed},
	} {
		if got := describe(ask(t, k, tc.qname, tc.typ)); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", questionText(tc.qname, tc.typ), indent(got), indent(tc.want))
		}
		if onWire, outcome := askWire(t, k, tc.qname, tc.typ); outcome != wire.Done || describe(onWire) != tc.want {
			t.Errorf("%s on the wire: %v %s", questionText(tc.qname, tc.typ), outcome, indent(describe(onWire)))
		}
	}
	storeOf(k).PutDone()
	if got := describe(ask(t, k, "late.shop.svc.cluster.local.", dns.TypeA)); got != passed || !k.Ready() {
		t.Errorf("synced: %s", got)
	}
}

// TestWithoutController serves before InitKubeCache, and with a controller of somebody else.
func TestWithoutController(t *testing.T) {
	k := New([]string{"cluster.local."})
	if got := describe(ask(t, k, "a.b.svc.cluster.local.", dns.TypeA)); !strings.HasPrefix(got, "SERVFAIL aa\nauthority cluster.local. 5 SOA") || k.Ready() {
		t.Errorf("without a controller: %s", got)
	}
	k.APIConn = foreign{}
	if got := describe(ask(t, k, "a.b.svc.cluster.local.", dns.TypeA)); !strings.HasPrefix(got, "NXDOMAIN") || !k.Ready() {
		t.Errorf("with another's: %s", got)
	}
	if n := k.Serial(request.Request{Zone: "cluster.local."}); n != 7 {
		t.Errorf("serial %d", n)
	}
	literal := &Kubernetes{Zones: []string{"example.org."}, APIConn: foreign{}}
	if got := describe(ask(t, literal, "x.example.org.", dns.TypeA)); !strings.HasPrefix(got, "NXDOMAIN aa\nauthority example.org. 5 SOA") {
		t.Errorf("a literal: %s", got)
	}
	if got := describe(ask(t, literal, "example.org.", dns.TypeNS)); !strings.HasPrefix(got, "NOERROR aa") {
		t.Errorf("a literal: %s", got)
	}
}

// foreign is a dnsController of another make.
type foreign struct{}

func (foreign) HasSynced() bool             { return true }
func (foreign) Stop() error                 { return nil }
func (foreign) Modified(ModifiedMode) int64 { return 7 }
func (foreign) PodIndex(ip string) []*object.Pod {
	if ip == "10.240.0.1" { // that of test.ResponseWriter
		return []*object.Pod{{Name: "p", Namespace: "other", PodIP: ip}}
	}
	return nil
}

// embedding is how others build upon the plugin.
type embedding struct{ *Kubernetes }

func (e embedding) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return dns.RcodeRefused, nil
}

func TestEmbedding(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	if h, ok := any(embedding{k}).(plugin.WireHandler); ok && reflect.TypeOf(h.WireSelf()) == reflect.TypeOf(h) {
		t.Error("a type that embeds the plugin is taken for it in the wire lane")
	}
	if reflect.TypeOf(k.WireSelf()) != reflect.TypeOf(k) {
		t.Error("the plugin is not itself in the wire lane")
	}
	other := *k
	other.Zones = []string{"example.org."}
	for _, tc := range []struct {
		k     *Kubernetes
		qname string
	}{{k, "cart.shop.svc.cluster.local."}, {&other, "cart.shop.svc.example.org."}, {k, "cart.shop.svc.cluster.local."}} {
		if got := describe(ask(t, tc.k, tc.qname, dns.TypeA)); got != "NOERROR aa\n"+tc.qname+" 5 A 10.96.10.1" {
			t.Errorf("%s: %s", tc.qname, got)
		}
	}
	k.Zones = []string{"example.net."}
	if got := describe(ask(t, k, "cart.shop.svc.cluster.local.", dns.TypeA)); got != passed {
		t.Errorf("of a zone that was taken away: %s", got)
	}
}

func TestUpstreamFails(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	const denied = "NOERROR aa\nauthority cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. SERIAL 7200 1800 86400 5"
	for what, up := range map[string]Upstreamer{
		"an error":    upstreamFunc(func(string, uint16) (*dns.Msg, error) { return nil, errors.New("no") }),
		"no reply":    upstreamFunc(func(string, uint16) (*dns.Msg, error) { return nil, nil }),
		"no upstream": nil,
		"nonsense": upstreamFunc(func(string, uint16) (*dns.Msg, error) {
			return &dns.Msg{Answer: []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: strings.Repeat("x", 64) + ".", Rrtype: dns.TypeA, Class: 1}, A: []byte{1, 2, 3, 4}}}}, nil
		}),
	} {
		k.Upstream = up
		for _, qname := range []string{"elsewhere.shop.svc.cluster.local.", "to-elsewhere.shop.svc.cluster.local."} {
			if got := describe(ask(t, k, qname, dns.TypeA)); got != denied {
				t.Errorf("%s: %s %s", what, qname, got)
			}
		}
	}
	k.Upstream = upstreamFunc(func(string, uint16) (*dns.Msg, error) {
		return &dns.Msg{MsgHdr: dns.MsgHdr{Truncated: true, Rcode: dns.RcodeNameError}}, nil
	})
	if got := describe(ask(t, k, "elsewhere.shop.svc.cluster.local.", dns.TypeA)); got != "NOERROR aa tc\nelsewhere.shop.svc.cluster.local. 5 CNAME www.example.org." {
		t.Errorf("truncated: %s", got)
	}
}

// TestAliasLoop lets an alias lead out of the zone and back again by way of the server.
func TestAliasLoop(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	put(t, storeOf(k), "kind: Service\nmetadata: {name: round, namespace: shop}\nspec: {type: ExternalName, externalName: round.example.org}")
	asked := 0
	k.Upstream = loopUpstream(func(ctx context.Context, state request.Request) (*dns.Msg, error) {
		asked++
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		_, err := k.ServeDNS(ctx, rec, new(dns.Msg).SetQuestion("round.shop.svc.cluster.local.", dns.TypeA))
		return rec.Msg, err
	})
	ctx := context.WithValue(t.Context(), dnsserver.LoopKey{}, 0)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := k.ServeDNS(ctx, rec, new(dns.Msg).SetQuestion("round.shop.svc.cluster.local.", dns.TypeA)); err != nil || rec.Msg == nil {
		t.Fatalf("%v, %v", rec.Msg, err)
	}
	if asked != upstream.MaxLoops+1 {
		t.Errorf("the server was asked %d times", asked)
	}
}

type loopUpstream func(ctx context.Context, state request.Request) (*dns.Msg, error)

func (f loopUpstream) Lookup(ctx context.Context, state request.Request, _ string, _ uint16) (*dns.Msg, error) {
	return f(ctx, state)
}

// TestManyEndpoints asks for a service with more endpoints than are compared with each other, all of them several times.
func TestManyEndpoints(t *testing.T) {
	const n = 700
	k := serving(t, "kubernetes cluster.local")
	s := storeOf(k)
	put(t, s, "kind: Service\nmetadata: {name: big, namespace: shop}\nspec: {clusterIP: None}")
	for i := range 2 {
		put(t, s, fmt.Sprintf("kind: EndpointSlice\nmetadata: {name: big-%d, namespace: shop, labels: {kubernetes.io/service-name: big}}\nports: [{name: a, protocol: TCP, port: 1}, {name: b, protocol: TCP, port: 1}]\nendpoints:\n%s", i, manyEndpoints(n, 2)))
	}
	for _, tc := range []struct {
		typ           uint16
		answer, extra int
	}{{dns.TypeA, n, 0}, {dns.TypeSRV, n, n}} {
		m, _ := askWire(t, k, "big.shop.svc.cluster.local.", tc.typ)
		if m == nil || len(m.Answer) != tc.answer || len(m.Extra) != tc.extra && !m.Truncated {
			t.Errorf("%s: %v", dns.TypeToString[tc.typ], m.MsgHdr)
			continue
		}
		met := map[string]bool{}
		for _, rr := range append(m.Answer, m.Extra...) {
			if met[rr.String()] {
				t.Errorf("twice: %s", rr)
			}
			met[rr.String()] = true
		}
	}
}

// TestTooMany asks for more than a message holds: TC tells that there are more, also where there is no other way to ask.
func TestTooMany(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	put(t, storeOf(k), "kind: Service\nmetadata: {name: big, namespace: shop}\nspec: {clusterIP: None}\n---\nkind: EndpointSlice\nmetadata: {name: big-1, namespace: shop, labels: {kubernetes.io/service-name: big}}\nports: [{name: a, protocol: TCP, port: 1}]\nendpoints:\n"+manyEndpoints(6000, 1))
	for _, typ := range []uint16{dns.TypeA, dns.TypeSRV} {
		m, _ := askWire(t, k, "big.shop.svc.cluster.local.", typ)
		if m == nil || !m.Truncated || len(m.Answer) < 500 || len(m.Answer) == 6000 {
			t.Errorf("%s: %v", dns.TypeToString[typ], m)
		}
	}
}

// TestLongNames asks at names so long that those of endpoints would be too long.
func TestLongNames(t *testing.T) {
	label := strings.Repeat("l", 60)
	zone := strings.Join([]string{label, label, "x"}, ".") + "."
	k := serving(t, "kubernetes "+zone+" in-addr.arpa")
	put(t, storeOf(k), "kind: Service\nmetadata: {name: "+label+", namespace: shop}\nspec: {clusterIP: None}\n---\nkind: EndpointSlice\nmetadata: {name: big-1, namespace: shop, labels: {kubernetes.io/service-name: "+
		label+"}}\nports: [{name: a, protocol: TCP, port: 1}]\nendpoints: [{addresses: [10.77.0.1], hostname: "+label+"}, {addresses: [10.77.0.2], hostname: h}]")
	m, _ := askWire(t, k, label+".shop.svc."+zone, dns.TypeSRV)
	if m == nil || len(m.Answer) != 1 || len(m.Extra) != 1 {
		t.Errorf("got %v", m)
	}
	m, _ = askWire(t, k, "1.0.77.10.in-addr.arpa.", dns.TypePTR)
	if m == nil || m.Rcode != dns.RcodeNameError {
		t.Errorf("got %v", m)
	}
}

// TestServeDuringChanges asks in both lanes while the cluster changes.
func TestServeDuringChanges(t *testing.T) {
	k := serving(t, "kubernetes cluster.local in-addr.arpa {\npods verified\n}")
	s := storeOf(k)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				kind := kinds[i%len(kinds)]
				if kind.name == "Headless-A-100" || kind.name == "Pod" {
					continue
				}
				if m, outcome := askWire(t, k, kind.qname, kind.typ); outcome != wire.Done || m.Rcode != kind.rcode {
					t.Errorf("%s: %v", kind.name, m)
				}
				ask(t, k, "96.10.in-addr.arpa.", dns.TypePTR)
				ask(t, k, "_sql._tcp.db.shop.svc.cluster.local.", dns.TypeSRV)
			}
		})
	}
	for i := range 300 {
		put(t, s, fmt.Sprintf("kind: EndpointSlice\nmetadata: {name: db-4b, namespace: shop, labels: {kubernetes.io/service-name: db}}\nports: [{name: sql, protocol: TCP, port: 5432}]\n"+
			"endpoints: [{addresses: [10.244.20.1], hostname: db-0}, {addresses: [10.244.20.2]}, {addresses: [10.244.21.%d]}]", i%200+1))
		put(t, s, fmt.Sprintf("kind: Service\nmetadata: {name: changing, namespace: shop}\nspec: {clusterIP: 10.96.12.%d}", i%200+1))
	}
	close(stop)
	wg.Wait()
}

// TestSerials changes what concerns the cluster's own zone, and that of imported services.
func TestSerials(t *testing.T) {
	k := serving(t, "kubernetes cluster.local clusterset.local {\nmulticluster clusterset.local\n}")
	serials := func() (own, imported uint32) {
		for _, zone := range []string{"cluster.local.", "clusterset.local."} {
			own, imported = imported, ask(t, k, zone, dns.TypeSOA).Answer[0].(*dns.SOA).Serial
			if n := k.Serial(request.Request{Zone: zone}); n != imported {
				t.Errorf("%s: serial %d as a backend, %d as a server", zone, n, imported)
			}
		}
		return own, imported
	}
	own, imported := serials()
	put(t, storeOf(k), "kind: Service\nmetadata: {name: own, namespace: shop}\nspec: {clusterIP: 10.96.9.8}")
	own2, imported2 := serials()
	if own2 <= own || imported2 != imported || own == 0 || imported == 0 {
		t.Errorf("a service: %d and %d, then %d and %d", own, imported, own2, imported2)
	}
	put(t, storeOf(k), "kind: ServiceImport\nmetadata: {name: other, namespace: shop}\nspec: {type: ClusterSetIP, ips: [10.98.0.9]}")
	own3, imported3 := serials()
	if own3 != own2 || imported3 <= imported2 {
		t.Errorf("an import: %d and %d, then %d and %d", own2, imported2, own3, imported3)
	}
}

func TestReadyAfterStop(t *testing.T) {
	c := &controller{Store: store.New(store.Config{}, nil)}
	c.PutDone()
	if err := c.Stop(); err != nil || !c.HasSynced() {
		t.Errorf("%v", err)
	}
	if err := c.Stop(); err == nil || err.Error() != "shutdown already in progress" {
		t.Errorf("a second time: %v", err)
	}
	c.start() // does nothing any more
}

// A pod behind a headless service, where it has a hostname, and behind another one, where it has none, has one name by
// its address with ptr_hostname_only, and two without.
func TestPTRHostnameOnly(t *testing.T) {
	for option, want := range map[string]string{
		"":                  "NOERROR aa\n1.0.78.10.in-addr.arpa. 5 PTR 10-78-0-1.one.pets.svc.cluster.local.\n1.0.78.10.in-addr.arpa. 5 PTR cat-0.two.pets.svc.cluster.local.",
		"ptr_hostname_only": "NOERROR aa\n1.0.78.10.in-addr.arpa. 5 PTR cat-0.two.pets.svc.cluster.local.",
	} {
		k := configured(t, "kubernetes cluster.local in-addr.arpa {\n"+option+"\n}")
		s := storeOf(k)
		put(t, s, `
kind: Namespace
metadata: {name: pets}
---
kind: EndpointSlice
metadata: {name: one-1, namespace: pets, labels: {kubernetes.io/service-name: one}}
endpoints: [{addresses: [10.78.0.1]}]
---
kind: EndpointSlice
metadata: {name: two-1, namespace: pets, labels: {kubernetes.io/service-name: two}}
endpoints: [{addresses: [10.78.0.1], hostname: cat-0}]
`)
		s.PutDone()
		const name = "1.0.78.10.in-addr.arpa."
		onWire, _ := askWire(t, k, name, dns.TypePTR)
		for _, m := range []*dns.Msg{ask(t, k, name, dns.TypePTR), onWire} {
			lines := strings.Split(describe(m), "\n")
			slices.Sort(lines[1:])
			if got := strings.Join(lines, "\n"); got != want {
				t.Errorf("%q:\n got %s\nwant %s", option, indent(got), indent(want))
			}
		}
	}
}
