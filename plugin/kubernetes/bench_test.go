package kubernetes

import (
	"context"
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// kinds are the questions that a cluster asks all the time.
var kinds = []struct {
	name, qname string
	typ         uint16
	rcode       int
	records     int
}{
	{"ClusterIP-A", "cart.shop.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 1},
	{"ClusterIP-AAAA", "cart.shop.svc.cluster.local.", dns.TypeAAAA, dns.RcodeSuccess, 1},
	{"Headless-A", "db.shop.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 3},
	{"Headless-A-100", "big.shop.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 100},
	{"Endpoint-A", "db-0.db.shop.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 1},
	{"Endpoint-dashed-A", "10-244-20-2.db.shop.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 1},
	{"SRV", "_http._tcp.cart.shop.svc.cluster.local.", dns.TypeSRV, dns.RcodeSuccess, 3},
	{"Headless-SRV", "_sql._tcp.db.shop.svc.cluster.local.", dns.TypeSRV, dns.RcodeSuccess, 9},
	{"PTR", "1.10.96.10.in-addr.arpa.", dns.TypePTR, dns.RcodeSuccess, 1},
	{"PTR-endpoint", "1.20.244.10.in-addr.arpa.", dns.TypePTR, dns.RcodeSuccess, 1},
	{"Pod", "10-9-9-9.shop.pod.cluster.local.", dns.TypeA, dns.RcodeSuccess, 1},
	{"Alias-inside", "to-cart.shop.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 2},
	{"Alias-CNAME", "elsewhere.shop.svc.cluster.local.", dns.TypeCNAME, dns.RcodeSuccess, 1},
	{"Version", "dns-version.cluster.local.", dns.TypeTXT, dns.RcodeSuccess, 1},
	{"NODATA", "six.shop.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 1},
	{"NXDOMAIN", "www.example.org.shop.svc.cluster.local.", dns.TypeA, dns.RcodeNameError, 1},
	{"NXDOMAIN-service", "nothing.shop.svc.cluster.local.", dns.TypeA, dns.RcodeNameError, 1},
	{"Apex-SOA", "cluster.local.", dns.TypeSOA, dns.RcodeSuccess, 1},
}

func busy(t testing.TB) *Kubernetes {
	k := serving(t, "kubernetes cluster.local in-addr.arpa ip6.arpa {\npods insecure\nttl 30\nfallthrough in-addr.arpa ip6.arpa\n}")
	s := storeOf(k)
	put(t, s, "kind: Service\nmetadata: {name: big, namespace: shop}\nspec: {clusterIP: None}")
	put(t, s, "kind: EndpointSlice\nmetadata: {name: big-1, namespace: shop, labels: {kubernetes.io/service-name: big}}\nports: [{name: a, protocol: TCP, port: 1}]\nendpoints:\n"+manyEndpoints(100, 1))
	return k
}

// manyEndpoints writes n endpoints, each of them the given number of times.
func manyEndpoints(n, times int) (text string) {
	for range times {
		for i := range n {
			text += fmt.Sprintf("- {addresses: [10.200.%d.%d]}\n", i/250, i%250+1)
		}
	}
	return text
}

// wireQuery asks the wire lane again and again without an allocation of its own.
type wireQuery struct {
	h      plugin.WireHandler
	packet []byte
	q      wire.Query
	w      wire.Reply
	buf    []byte
}

func newWireQuery(t testing.TB, k *Kubernetes, qname string, typ uint16) *wireQuery {
	packet, err := new(dns.Msg).SetQuestion(qname, typ).Pack()
	if err != nil {
		t.Fatal(err)
	}
	return &wireQuery{h: k, packet: packet, buf: make([]byte, 0, 8192)}
}

func (x *wireQuery) run(ctx context.Context) wire.Outcome {
	x.q.Parse(x.packet)
	x.q.Peer.Limit = wire.MaxMessage
	x.w.Reset(x.buf)
	return x.h.ServeWire(ctx, &x.w, &x.q)
}

func TestKindsDoNotAllocate(t *testing.T) {
	k := busy(t)
	for _, kind := range kinds {
		x := newWireQuery(t, k, kind.qname, kind.typ)
		bad := 0
		n := testing.AllocsPerRun(50, func() {
			if x.run(context.Background()) != wire.Done || x.w.Rcode() != kind.rcode || len(x.w.Recs()) != kind.records {
				bad++
			}
		})
		if n != 0 || bad > 0 {
			t.Errorf("%s: %v allocations, %d bad answers: rcode %d, %d records", kind.name, n, bad, x.w.Rcode(), len(x.w.Recs()))
		}
	}
}

func BenchmarkServeWire(b *testing.B) {
	k := busy(b)
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			x, ctx := newWireQuery(b, k, kind.qname, kind.typ), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if x.run(ctx) != wire.Done {
					b.Fatal("not answered")
				}
				x.w.Finish(&x.q, 1232)
			}
			if x.w.Rcode() != kind.rcode || len(x.w.Recs()) != kind.records {
				b.Fatalf("rcode %d, %d records", x.w.Rcode(), len(x.w.Recs()))
			}
		})
	}
}
