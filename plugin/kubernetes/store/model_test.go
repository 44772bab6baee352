package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

// model is a cluster kept the simplest way: the objects by name, and a look at all of them for each question.
type model struct {
	services map[string]*api.Service
	slices   map[string]*discovery.EndpointSlice
	pods     map[string]*api.Pod
}

func (m *model) serviceByIP(a netip.Addr) (out []string) {
	for key, svc := range m.services {
		if slices.Contains(svc.Spec.ClusterIPs, a.String()) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

func (m *model) endpoints(match func(s *discovery.EndpointSlice) bool) string {
	var all []string
	for _, s := range m.slices {
		if !match(s) {
			continue
		}
		for _, e := range s.Endpoints {
			all = append(all, fmt.Sprintf("%s/%s %s h=%s t= n= z=", s.Namespace, s.Labels[lean.LabelService], e.Addresses[0], *e.Hostname))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (m *model) podsAt(a netip.Addr) (out []string) {
	for key, p := range m.pods {
		for _, ip := range p.Status.PodIPs {
			if ip.IP == a.String() {
				out = append(out, key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// world makes random objects out of few names and addresses, so that they meet.
type world struct{ *rand.Rand }

func (w world) name() string { return fmt.Sprintf("n%d", w.IntN(6)) }

func (w world) ns() string { return fmt.Sprintf("ns%d", w.IntN(2)) }

func (w world) ip() string {
	if w.IntN(3) == 0 {
		return fmt.Sprintf("2001:db8::%d", 1+w.IntN(8))
	}
	return fmt.Sprintf("192.0.2.%d", 1+w.IntN(8))
}

func (w world) service() *api.Service {
	s := &api.Service{ObjectMeta: named(w.ns(), w.name())}
	for range w.IntN(3) {
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, w.ip())
	}
	return s
}

func (w world) slice() *discovery.EndpointSlice {
	s := newSlice(w.ns(), w.name()+"-s", w.name())
	for range w.IntN(6) {
		e := endpoint(w.ip())
		e.Hostname = ptr(w.name())
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func (w world) pod() *api.Pod {
	var ips []string
	for range w.IntN(3) {
		ips = append(ips, w.ip())
	}
	return pod(w.ns(), w.name(), ips...)
}

func (m *model) compare(t *testing.T, s *Store, step int) {
	t.Helper()
	for ns := range 2 {
		for n := range 6 {
			ns, name := fmt.Sprintf("ns%d", ns), fmt.Sprintf("n%d", n)
			if got, want := s.Service([]byte(ns), []byte(name)) != nil, m.services[ns+"/"+name] != nil; got != want {
				t.Fatalf("step %d: service %s/%s there: %v, want %v", step, ns, name, got, want)
			}
			got := endpoints(of(s.Slices([]byte(ns), []byte(name))))
			want := m.endpoints(func(sl *discovery.EndpointSlice) bool {
				return sl.Namespace == ns && sl.Labels[lean.LabelService] == name
			})
			if got != want {
				t.Fatalf("step %d: endpoints of %s/%s:\n%s\nwant\n%s", step, ns, name, got, want)
			}
		}
	}
	for i := 1; i <= 8; i++ {
		for _, a := range []netip.Addr{addr(fmt.Sprintf("192.0.2.%d", i)), addr(fmt.Sprintf("2001:db8::%d", i))} {
			m.compareAddr(t, s, a, step)
		}
	}
	if len(s.Services()) != len(m.services) {
		t.Fatalf("step %d: %d services, want %d", step, len(s.Services()), len(m.services))
	}
}

func (m *model) compareAddr(t *testing.T, s *Store, a netip.Addr, step int) {
	t.Helper()
	want := m.serviceByIP(a)
	if svc := s.ServiceByIP(a); (svc != nil) != (len(want) > 0) || svc != nil && !slices.Contains(want, svc.Namespace()+"/"+svc.Name()) {
		t.Fatalf("step %d: service at %s: %+v, want one of %v", step, a, svc, want)
	}
	got := endpoints(ofIP(s.SlicesByIP(a)))
	wantEnds := m.endpoints(func(sl *discovery.EndpointSlice) bool {
		return slices.ContainsFunc(sl.Endpoints, func(e discovery.Endpoint) bool { return e.Addresses[0] == a.String() })
	})
	if got != wantEnds {
		t.Fatalf("step %d: slices at %s:\n%s\nwant\n%s", step, a, got, wantEnds)
	}
	var pods []string
	x := s.Pods(a)
	for p := x.Next(); p != nil; p = x.Next() {
		pods = append(pods, p.Namespace()+"/"+p.Name())
	}
	slices.Sort(pods)
	if want := m.podsAt(a); !slices.Equal(pods, want) {
		t.Fatalf("step %d: pods at %s: %v, want %v", step, a, pods, want)
	}
	if alone := s.PodAt(a); (alone != nil) != (len(pods) == 1) {
		t.Fatalf("step %d: pod alone at %s: %+v of %v", step, a, alone, pods)
	}
}

// TestModel compares the store with the model through random events and rounds.
func TestModel(t *testing.T) {
	for seed := range uint64(3) {
		w := world{rand.New(rand.NewPCG(seed, 7))}
		s := New(Config{Endpoints: true, Pods: true}, nil)
		m := &model{map[string]*api.Service{}, map[string]*discovery.EndpointSlice{}, map[string]*api.Pod{}}
		for step := range 3000 {
			switch svc, sl, p := w.service(), w.slice(), w.pod(); w.IntN(8) {
			case 0, 1:
				s.putService(t, svc)
				m.services[svc.Namespace+"/"+svc.Name] = svc
			case 2:
				s.Delete(decode(t, new(lean.Service), svc))
				delete(m.services, svc.Namespace+"/"+svc.Name)
			case 3, 4:
				s.putSlice(t, sl)
				m.slices[sl.Namespace+"/"+sl.Name] = sl
			case 5:
				s.Delete(decode(t, new(lean.EndpointSlice), sl))
				delete(m.slices, sl.Namespace+"/"+sl.Name)
			case 6:
				s.putPod(t, p)
				m.pods[p.Namespace+"/"+p.Name] = p
			case 7:
				s.Delete(decode(t, new(lean.Pod), p))
				delete(m.pods, p.Namespace+"/"+p.Name)
			}
			if step%200 == 199 {
				m.round(t, w, s)
			}
			if step%5 == 0 {
				m.compare(t, s, step)
			}
		}
	}
}

// round reads the model again into the store, after some of its objects have come, changed or gone unnoticed.
func (m *model) round(t *testing.T, w world, s *Store) {
	for _, key := range slices.Sorted(maps.Keys(m.slices)) {
		if w.IntN(3) == 0 {
			delete(m.slices, key)
		}
	}
	sl := w.slice()
	m.slices[sl.Namespace+"/"+sl.Name] = sl
	before := len(m.slices)
	s.slices.begin()
	for _, sl := range m.slices {
		s.putSlice(t, sl)
	}
	s.slices.sweep()
	if s.slices.byName.size != before {
		t.Fatalf("%d slices after a round, want %d", s.slices.byName.size, before)
	}
}
