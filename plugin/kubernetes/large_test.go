package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// large is a headless service in the namespace shop.
type large struct {
	endpoints, ports int
	times            int // that all of them stand in slices
}

func (l large) String() string { return fmt.Sprintf("%dx%dx%d", l.endpoints, l.ports, l.times) }

// put takes the service into a cluster, as "large", a hundred endpoints in a slice. They are at 10.201.0.1 and on.
func (l large) put(t testing.TB, k *Kubernetes) {
	s := storeOf(k)
	put(t, s, "kind: Service\nmetadata: {name: large, namespace: shop}\nspec: {clusterIP: None}")
	var ports strings.Builder
	for i := range l.ports {
		fmt.Fprintf(&ports, "- {name: p%d, protocol: TCP, port: %d}\n", i, 1000+i)
	}
	for time := range l.times {
		for from := 0; from < l.endpoints; from += 100 {
			var ends strings.Builder
			for i := from; i < min(l.endpoints, from+100); i++ {
				fmt.Fprintf(&ends, "- {addresses: [10.201.%d.%d]}\n", i/250, i%250+1)
			}
			put(t, s, fmt.Sprintf("kind: EndpointSlice\nmetadata: {name: large-%d-%d, namespace: shop, labels: {kubernetes.io/service-name: large}}\nports:\n%sendpoints:\n%s",
				time, from, ports.String(), ends.String()))
		}
	}
}

// putNames makes n services whose only endpoint is 10.202.0.1, in the given number of slices each.
func putNames(t testing.TB, k *Kubernetes, n, times int) {
	s := storeOf(k)
	for i := range n {
		put(t, s, fmt.Sprintf("kind: Service\nmetadata: {name: one-%d, namespace: shop}\nspec: {clusterIP: None}", i))
		for time := range times {
			put(t, s, fmt.Sprintf("kind: EndpointSlice\nmetadata: {name: one-%d-%d, namespace: shop, labels: {kubernetes.io/service-name: one-%d}}\nports: [{port: 1}]\nendpoints: [{addresses: [10.202.0.1]}]", i, time, i))
		}
	}
}

// What stands in many slices is in the answer once, with each of its ports, and nothing is missing.
func TestEachOnce(t *testing.T) {
	for _, l := range []large{{7, 1, 2}, {8, 1, 3}, {9, 1, 3}, {300, 1, 4}, {30, 10, 5}} {
		k := serving(t, "kubernetes cluster.local in-addr.arpa")
		l.put(t, k)
		putNames(t, k, l.endpoints, l.times)
		for _, tc := range []struct {
			qname         string
			typ           uint16
			answer, extra int
		}{
			{"large.shop.svc.cluster.local.", dns.TypeA, l.endpoints, 0},
			{"large.shop.svc.cluster.local.", dns.TypeSRV, l.endpoints * l.ports, l.endpoints},
			{"_p0._tcp.large.shop.svc.cluster.local.", dns.TypeSRV, l.endpoints, l.endpoints},
			{"1.0.202.10.in-addr.arpa.", dns.TypePTR, l.endpoints, 0},
		} {
			m, _ := askWire(t, k, tc.qname, tc.typ)
			if len(m.Answer) != tc.answer || len(m.Extra) != tc.extra || m.Truncated {
				t.Errorf("%v: %s %s: %d records and %d additional ones, want %d and %d", l, tc.qname, dns.TypeToString[tc.typ], len(m.Answer), len(m.Extra), tc.answer, tc.extra)
			}
			met := map[string]bool{}
			for _, rr := range append(m.Answer, m.Extra...) {
				if met[rr.String()] {
					t.Errorf("%v: %s %s: %v comes twice", l, tc.qname, dns.TypeToString[tc.typ], rr)
				}
				met[rr.String()] = true
			}
		}
	}
}

// An index whose generations begin anew holds nothing of those before.
func TestIndexGenerations(t *testing.T) {
	x := &index{gen: 1}
	x.add(7, 3)
	all := func(int) bool { return true }
	if !x.has(7, all) || x.has(8, all) || x.has(7+1<<32, all) || x.has(7, func(rec int) bool { return rec != 3 }) {
		t.Error("not found, or found as another")
	}
	x.gen = 0xFFFF
	indexes.Put(x)
	for range 1000 { // a pool may lose what it is given
		y := newIndex()
		if y.gen == 0 || y.has(7, all) {
			t.Fatalf("generation %d, and it has what was added before", y.gen)
		}
		y.release()
	}
}

func BenchmarkLarge(b *testing.B) {
	for _, l := range []large{{1000, 100, 1}, {4000, 1, 10}, {8, 100, 100}, {1000, 1, 100}} {
		k := serving(b, "kubernetes cluster.local in-addr.arpa")
		l.put(b, k)
		putNames(b, k, min(l.endpoints, 1000), min(l.times, 10))
		for _, q := range []struct {
			qname string
			typ   uint16
		}{{"large.shop.svc.cluster.local.", dns.TypeA}, {"large.shop.svc.cluster.local.", dns.TypeSRV}, {"1.0.202.10.in-addr.arpa.", dns.TypePTR}} {
			b.Run(fmt.Sprint(l, "/", dns.TypeToString[q.typ]), func(b *testing.B) {
				x, ctx := newWireQuery(b, k, q.qname, q.typ), context.Background()
				b.ReportAllocs()
				for b.Loop() {
					if x.run(ctx) != wire.Done {
						b.Fatal("not answered")
					}
				}
			})
		}
	}
}
