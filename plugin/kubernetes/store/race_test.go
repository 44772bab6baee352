package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	api "k8s.io/api/core/v1"
)

// TestReadersAndChurn lets readers look while writers replace everything again and again. A record
// must be whole: all of a slice's hostnames are of one generation. And what
// is only ever replaced must always be found, and its generations never go back.
func TestReadersAndChurn(t *testing.T) {
	const services, rounds = 30, 60
	s := New(everything(), nil)
	put := func(gen int) {
		for i := range services {
			name := fmt.Sprintf("web-%d", i)
			svc := &api.Service{ObjectMeta: named("ns1", name), Spec: api.ServiceSpec{ClusterIPs: []string{fmt.Sprintf("192.0.2.%d", i)}}}
			svc.Spec.Ports = []api.ServicePort{{Name: fmt.Sprintf("g%d", gen), Port: int32(gen + 1)}}
			s.putService(t, svc)
			sl := newSlice("ns1", name+"-a", name)
			for k := range 4 + gen%3 {
				e := endpoint(fmt.Sprintf("198.51.100.%d", 10*k+gen%7))
				e.Hostname = ptr(fmt.Sprintf("h-%d", gen))
				sl.Endpoints = append(sl.Endpoints, e)
			}
			s.putSlice(t, sl)
			s.putPod(t, pod("ns1", name, fmt.Sprintf("203.0.113.%d", i), fmt.Sprintf("203.0.113.%d", 100+gen%50)))
			if gen%5 == 4 { // one that comes and goes
				s.Delete(decode(t, new(lean.Pod), pod("ns1", "web-3")))
			}
		}
	}
	put(0)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			last := make([]int32, services)
			for !stop.Load() && !t.Failed() {
				for i := range services {
					last[i] = read(t, s, i, last[i])
				}
				s.Serial(Internal)
			}
		})
	}
	for gen := 1; gen <= rounds; gen++ {
		put(gen)
	}
	stop.Store(true)
	wg.Wait()
}

func read(t *testing.T, s *Store, i int, last int32) int32 {
	name := fmt.Sprintf("web-%d", i)
	svc := s.Service([]byte("ns1"), []byte(name))
	if svc == nil || s.ServiceByIP(addr(fmt.Sprintf("192.0.2.%d", i))) == nil {
		t.Errorf("service %s is not found", name)
		return last
	}
	p := svc.Ports()[0]
	if p.Name != fmt.Sprintf("g%d", p.Number-1) || p.Number < last {
		t.Errorf("service %s has port %v after %d", name, p, last)
	}
	n := 0
	x := s.Slices([]byte("ns1"), []byte(name))
	for sl := x.Next(); sl != nil; sl = x.Next() {
		n++
		for k := range sl.Len() {
			if e := sl.Endpoint(k); e.Hostname != sl.Endpoint(0).Hostname {
				t.Errorf("a slice of two generations: %s and %s", e.Hostname, sl.Endpoint(0).Hostname)
			}
		}
	}
	if n != 1 {
		t.Errorf("service %s has %d slices", name, n)
	}
	if i != 3 && s.PodAt(addr(fmt.Sprintf("203.0.113.%d", i))) == nil {
		t.Errorf("pod %s is not found", name)
	}
	y := s.SlicesByIP(addr("198.51.100.3"))
	for sl := y.Next(); sl != nil; sl = y.Next() {
		if sl.Find(addr("198.51.100.3"), 0) < 0 {
			t.Error("a slice without the address that it was found by")
		}
	}
	return p.Number
}
