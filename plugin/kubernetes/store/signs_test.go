package store

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// TestWatchVanishes has a server that gives signs of life, until all that it sends on the watches that there are
// vanishes: others are begun, where they stopped.
func TestWatchVanishes(t *testing.T) {
	defer func(d time.Duration) { signs = d }(signs)
	signs = time.Second
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	s := New(Config{}, f.client())
	s.Start()
	defer s.Stop()
	awaitSync(t, s)
	f.with(func() {
		f.version++
		f.log["services"] = append(f.log["services"], fakeEvent{f.version, "BOOKMARK", f.bookmark("services", f.version, false)})
	})
	f.put(clusterIP("web", "192.0.2.2"))
	eventually.Holds(t, "a change", func() bool { return s.at("web") == "192.0.2.2" })
	f.with(func() { f.lost = f.watches })
	f.put(clusterIP("web", "192.0.2.3"))
	eventually.Holds(t, "the next one", func() bool { return s.at("web") == "192.0.2.3" })
	// Also before a watch has given any.
	f.with(func() {
		f.log["services"] = nil
		f.lost = f.watches + 4
		f.epoch++
	})
	f.put(clusterIP("web", "192.0.2.4"))
	eventually.Holds(t, "the last one", func() bool { return s.at("web") == "192.0.2.4" })
	if n := s.Stats().Gaps; n != 0 {
		t.Errorf("%d gaps", n)
	}
}
