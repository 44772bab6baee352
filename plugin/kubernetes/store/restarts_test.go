package store

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	api "k8s.io/api/core/v1"
)

// TestRestartsKeepNothing: a dozen times the API forgets its past, so all is read again; what a round needs is gone
// after it.
func TestRestartsKeepNothing(t *testing.T) {
	f := newFakeAPI(t)
	f.protobuf = true
	f.put(&api.Namespace{ObjectMeta: named("", "ns1")})
	const objects = 1000
	for i := range objects {
		name, ip := fmt.Sprintf("web-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		f.put(clusterIP(name, ip))
		f.put(newSlice("ns1", name+"-a", name, endpoint(ip), endpoint("10.9.9.9")))
		f.put(pod("ns1", name, ip))
	}
	s := start(t, everythingLocal(), f.client())
	awaitSync(t, s)
	kinds := len(s.reflect)
	var before uint64
	for round := 1; round <= 12; round++ {
		gaps := s.Stats().Gaps
		f.forget()
		f.endWatches()
		eventually.Holds(t, "all kinds are read again", func() bool {
			st := s.Stats()
			return st.Gaps >= gaps+uint64(kinds)
		})
		ip, ns := fmt.Sprintf("192.0.2.%d", round), fmt.Sprintf("round-%d", round%2)
		f.put(&api.Namespace{ObjectMeta: named("", ns)})
		f.remove(&api.Namespace{ObjectMeta: named("", fmt.Sprintf("round-%d", (round+1)%2))})
		f.put(clusterIP("web-7", ip))
		f.put(newSlice("ns1", "web-7-a", "web-7", endpoint(ip)))
		f.put(pod("ns1", "web-7", ip))
		eventually.Holds(t, "each kind is followed again", func() bool {
			all := s.SlicesByIP(addr(ip))
			return s.at("web-7") == ip && s.Exposed([]byte(ns)) && s.PodAt(addr(ip)) != nil && all.Next() != nil
		})
		if round == 4 {
			before = live()
		}
	}
	if len(s.Services()) != objects {
		t.Errorf("%d services", len(s.Services()))
	}
	t.Logf("live octets: %d, then %d", before, live())
	if now := live(); now > before+before/20 {
		t.Errorf("%d octets are in use after 12 restarts, %d after 4", now, before)
	}
}

// live is how many octets are in use.
func live() uint64 {
	var m runtime.MemStats
	for range 2 { // pools keep what they have for one collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
