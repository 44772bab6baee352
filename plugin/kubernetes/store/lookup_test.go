package store

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	api "k8s.io/api/core/v1"
)

func TestLookupsDoNotAllocate(t *testing.T) {
	s := New(everything(), nil)
	for i := range 50 {
		name := fmt.Sprintf("web-%d", i)
		s.putNamespace(t, "ns1")
		s.putService(t, &api.Service{ObjectMeta: named("ns1", name), Spec: api.ServiceSpec{ClusterIP: fmt.Sprintf("192.0.2.%d", i), ExternalIPs: []string{"198.51.100.1"}}})
		s.putSlice(t, newSlice("ns1", name+"-a", name, endpoint("192.0.2.200"), endpoint(fmt.Sprintf("192.0.2.%d", 100+i))))
		s.putPod(t, pod("ns1", name, fmt.Sprintf("192.0.2.%d", 100+i)))
	}
	ns, name, ip := []byte("ns1"), []byte("web-7"), addr("192.0.2.107")
	found := 0
	if n := testing.AllocsPerRun(100, func() {
		if s.Exposed(ns) && s.Service(ns, name) != nil && s.ServiceByIP(addr("192.0.2.7")) != nil && s.PodAt(ip) != nil && s.HasPod(ns, ip) {
			found++
		}
		x := s.Slices(ns, name)
		for sl := x.Next(); sl != nil; sl = x.Next() {
			for i := range sl.Len() {
				if e := sl.Endpoint(i); e.Addr == ip {
					found++
				}
			}
		}
		y := s.SlicesByIP(ip)
		for sl := y.Next(); sl != nil; sl = y.Next() {
			found += sl.Find(ip, 0)
		}
		z := s.ServicesByExternalIP(addr("198.51.100.1"))
		for svc := z.Next(); svc != nil; svc = z.Next() {
			found++
		}
		found += int(s.Serial(Internal) & 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if found < 100*50 {
		t.Errorf("found too little: %d", found)
	}
}

func BenchmarkPutSlice(b *testing.B) {
	s := New(Config{Endpoints: true}, nil)
	var two [2]lean.EndpointSlice
	for i := range two {
		sl := newSlice("ns1", "web-a", "web")
		for k := range 5 {
			sl.Endpoints = append(sl.Endpoints, endpoint(fmt.Sprintf("192.0.2.%d", 10*i+k)))
		}
		decode(b, &two[i], sl)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Put(&two[i%2])
	}
}

// One endpoint of a slice changes: the first one, so that all others stand elsewhere in it.
func BenchmarkPutLongSlice(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(Config{Endpoints: true}, nil)
			var two [2]lean.EndpointSlice
			for i := range two {
				sl := newSlice("ns1", "web-a", "web")
				for k := i; k < n; k++ {
					sl.Endpoints = append(sl.Endpoints, endpoint(fmt.Sprintf("10.0.%d.%d", k/250, k%250)))
				}
				decode(b, &two[i], sl)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Put(&two[i%2])
			}
		})
	}
}

// The same with the names of pods, nodes and zones.
func BenchmarkPutLongSliceWithNodes(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(everything(), nil)
			var two [2]lean.EndpointSlice
			for i := range two {
				sl := newSlice("ns1", "web-a", "web")
				for k := i; k < n; k++ {
					e := endpoint(fmt.Sprintf("10.0.%d.%d", k/250, k%250))
					e.Zone, e.NodeName = ptr("zone-a"), ptr(fmt.Sprintf("node-%d.zone-a.example.org", k%200))
					e.TargetRef = &api.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("web-6d4cf56db6-x%04d", k)}
					sl.Endpoints = append(sl.Endpoints, e)
				}
				decode(b, &two[i], sl)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Put(&two[i%2])
			}
		})
	}
}

// Slices of many services share one address, as those of pods in the network of a node do. One is put in and taken out again.
func BenchmarkPutShared(b *testing.B) {
	for _, n := range []int{1000, 4000, 16000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(Config{Endpoints: true}, nil)
			for i := range n {
				name := fmt.Sprintf("web-%d", i)
				s.putSlice(b, newSlice("ns1", name+"-a", name, endpoint("192.0.2.200")))
			}
			var one lean.EndpointSlice
			decode(b, &one, newSlice("ns1", "one-a", "one", endpoint("192.0.2.200")))
			b.ReportAllocs()
			for b.Loop() {
				s.Put(&one)
				s.Delete(&one)
			}
		})
	}
}

func BenchmarkService(b *testing.B) {
	s := New(everything(), nil)
	for i := range 10000 {
		s.putService(b, &api.Service{ObjectMeta: named("ns1", fmt.Sprintf("web-%d", i))})
	}
	ns, name := []byte("ns1"), []byte("web-777")
	b.ReportAllocs()
	for b.Loop() {
		if s.Service(ns, name) == nil {
			b.Fatal("not found")
		}
	}
}

func BenchmarkEndpoints(b *testing.B) {
	s := New(everything(), nil)
	for i := range 10000 {
		name := fmt.Sprintf("web-%d", i)
		s.putSlice(b, newSlice("ns1", name+"-a", name, endpoint("192.0.2.1"), endpoint("192.0.2.2"), endpoint("192.0.2.3"), endpoint("192.0.2.4"), endpoint("192.0.2.5")))
	}
	ns, name := []byte("ns1"), []byte("web-777")
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		x := s.Slices(ns, name)
		for sl := x.Next(); sl != nil; sl = x.Next() {
			for i := range sl.Len() {
				if sl.Endpoint(i).Addr.Is4() {
					n++
				}
			}
		}
		if n != 5 {
			b.Fatal(n)
		}
	}
}
