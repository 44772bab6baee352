package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

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
	for again := range l.times {
		for from := 0; from < l.endpoints; from += 100 {
			var ends strings.Builder
			for i := from; i < min(l.endpoints, from+100); i++ {
				fmt.Fprintf(&ends, "- {addresses: [10.201.%d.%d]}\n", i/250, i%250+1)
			}
			put(t, s, fmt.Sprintf("kind: EndpointSlice\nmetadata: {name: large-%d-%d, namespace: shop, labels: {kubernetes.io/service-name: large}}\nports:\n%sendpoints:\n%s",
				again, from, ports.String(), ends.String()))
		}
	}
}

// putNames makes n services whose only endpoint is 10.202.0.1, in the given number of slices each.
func putNames(t testing.TB, k *Kubernetes, n, times int) {
	s := storeOf(k)
	for i := range n {
		put(t, s, fmt.Sprintf("kind: Service\nmetadata: {name: one-%d, namespace: shop}\nspec: {clusterIP: None}", i))
		for again := range times {
			put(t, s, fmt.Sprintf("kind: EndpointSlice\nmetadata: {name: one-%d-%d, namespace: shop, labels: {kubernetes.io/service-name: one-%d}}\nports: [{port: 1}]\nendpoints: [{addresses: [10.202.0.1]}]", i, again, i))
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

// Each number of a port counts once, and those of very many ports are not each compared with all before it.
func TestManyPorts(t *testing.T) {
	for _, most := range []int{fewPorts / 2, fewPorts/2 + 1, 60000} {
		var ports []store.Port
		for i := range most {
			ports = append(ports, store.Port{Number: int32(i)}, store.Port{Number: int32(most - i - 1)})
		}
		began, count := time.Now(), 0
		met := newNumbers(ports)
		for i := range ports {
			if !met.has(new(name), i) {
				count++
			}
		}
		if took := time.Since(began); count != most || took > time.Second {
			t.Errorf("%d numbers of %d, after %v", count, most, took)
		}
	}
	k := serving(t, "kubernetes cluster.local")
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, "  - {name: p%d, protocol: TCP, port: %d}\n  - {name: q%d, protocol: UDP, port: %d}\n", i, 1000+i, i, 1000+i)
	}
	put(t, storeOf(k), "kind: Service\nmetadata: {name: many, namespace: shop}\nspec:\n  clusterIP: 10.96.7.1\n  ports:\n"+all.String())
	m, _ := askWire(t, k, "many.shop.svc.cluster.local.", dns.TypeSRV)
	if n := len(m.Answer); !m.Truncated || n < 1000 || m.Answer[n-1].(*dns.SRV).Port != uint16(1000+n-1) {
		t.Errorf("%d records, truncated: %t", len(m.Answer), m.Truncated)
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

// putOutside makes services that are reached from outside: "balanced" with addresses and ports, "named" with names and
// ports.
func putOutside(t testing.TB, k *Kubernetes, hosts, ports int) {
	var ips, names, all strings.Builder
	for i := range hosts {
		fmt.Fprintf(&ips, "- {ip: 203.%d.%d.%d}\n", i/62500, i/250%250, i%250+1)
		fmt.Fprintf(&names, "- {hostname: lb-%d.example.net}\n", i)
	}
	for i := range ports {
		fmt.Fprintf(&all, "  - {name: p%d, protocol: TCP, port: %d}\n  - {name: q%d, protocol: UDP, port: %d}\n", i, 1000+i, i, 1000+i)
	}
	s := storeOf(k)
	const text = "kind: Service\nmetadata: {name: %s, namespace: shop}\nspec:\n  type: LoadBalancer\n  clusterIP: 10.96.7.%d\n  ports:\n%sstatus:\n  loadBalancer:\n    ingress:\n%s"
	put(t, s, fmt.Sprintf(text, "balanced", 1, all.String(), indented(ips.String())))
	put(t, s, fmt.Sprintf(text, "named", 2, all.String(), indented(names.String())))
}

func indented(text string) string {
	return "    " + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n    "), "    ")
}

// oneAnswer is a ServiceBackend that has the same services at each name.
type oneAnswer struct {
	plugin.ServiceBackend
	services []msg.Service
}

func (o oneAnswer) Services(context.Context, request.Request, bool, plugin.Options) ([]msg.Service, error) {
	return o.services, nil
}

func (oneAnswer) Lookup(context.Context, request.Request, string, uint16) (*dns.Msg, error) {
	return new(dns.Msg), nil
}

// answerOf is what a client gets of services.
func answerOf(t testing.TB, state request.Request, all []msg.Service, limit int) []byte {
	m := new(dns.Msg).SetReply(state.Req)
	b := oneAnswer{services: all}
	switch state.QType() {
	case dns.TypeA:
		m.Answer, m.Truncated, _ = plugin.A(t.Context(), b, state.Zone, state, nil, plugin.Options{})
	case dns.TypeAAAA:
		m.Answer, m.Truncated, _ = plugin.AAAA(t.Context(), b, state.Zone, state, nil, plugin.Options{})
	case dns.TypeSRV:
		m.Answer, m.Extra, _ = plugin.SRV(t.Context(), b, state.Zone, state, plugin.Options{})
	}
	var w wire.Reply
	if err := w.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	return w.End(wire.EndMsg(m, limit))
}

// What ExternalAnswer leaves out is not missed by any client.
func TestExternalAnswer(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {2, 3}, {5, 30}, {60, 30}, {300, 2}, {700, 60}, {3000, 3}} {
		hosts, ports := size[0], size[1]
		k := serving(t, "kubernetes cluster.local")
		large{hosts, ports, 2}.put(t, k)
		putOutside(t, k, hosts, ports)
		for _, qname := range []string{"large.shop.example.org.", "_p0._tcp.large.shop.example.org.", "balanced.shop.example.org.", "named.shop.example.org.", "_p0._tcp.balanced.shop.example.org."} {
			for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT} {
				state := from("192.0.2.1", qname)
				state.Req.Question[0].Qtype = typ
				state.Zone = "example.org."
				all, rcode := k.External(state, true)
				some, rcodeOfSome := k.ExternalAnswer(state, true)
				what := fmt.Sprintf("%d hosts, %d ports: %s %s", hosts, ports, qname, dns.TypeToString[typ])
				if rcode != rcodeOfSome || len(all) == 0 || len(some) == 0 {
					t.Errorf("%s: %d services, rcode %d, and %d, rcode %d", what, len(all), rcode, len(some), rcodeOfSome)
				}
				if len(some) > 6000 || typ == dns.TypeTXT && len(some) != 1 {
					t.Errorf("%s: %d of %d services", what, len(some), len(all))
				}
				for _, limit := range []int{512, 1232, wire.MaxMessage} {
					if !bytes.Equal(answerOf(t, state, all, limit), answerOf(t, state, some, limit)) {
						t.Errorf("%s, limit %d: another answer from %d services than from %d", what, limit, len(some), len(all))
					}
				}
			}
		}
	}
}

func BenchmarkExternal(b *testing.B) {
	k := serving(b, "kubernetes cluster.local")
	large{1000, 100, 1}.put(b, k)
	putOutside(b, k, 2000, 1000)
	for _, qname := range []string{"large.shop.example.org.", "balanced.shop.example.org."} {
		for _, typ := range []uint16{dns.TypeA, dns.TypeSRV} {
			state := from("192.0.2.1", qname)
			state.Req.Question[0].Qtype = typ
			state.Zone = "example.org."
			for name, f := range map[string]func(request.Request, bool) ([]msg.Service, int){"all": k.External, "answer": k.ExternalAnswer} {
				b.Run(qname+dns.TypeToString[typ]+"/"+name, func(b *testing.B) {
					for b.Loop() {
						all, _ := f(state, true)
						answerOf(b, state, all, wire.MaxMessage)
					}
				})
			}
		}
	}
}
