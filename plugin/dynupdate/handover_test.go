package dynupdate

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// TestLateHandOver: a process that lets go of the database late is waited for: updates are refused until then, and go on
// behind what it wrote last.
func TestLateHandOver(t *testing.T) {
	wait, every := handOverWait, retryEvery
	defer func() { handOverWait, retryEvery = wait, every }()
	handOverWait, retryEvery = 10*time.Millisecond, 20*time.Millisecond
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	old := newBed(t, dir, "database "+path)
	old.send(newUpdate(t, "up IN before.example.org. 60 A 192.0.2.1"))

	d, c, err := database.Look(path, old.d.store.served.Current().Origin(), 16)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(old.d.Zone, path, c.Version, c.Deltas, d, journalLimits{count: 16})
	s.handing = &group{done: make(chan struct{})}
	s.begin()
	defer func() {
		s.mu.Lock()
		s.isClosed = true
		s.mu.Unlock()
		s.poke()
		<-s.ended
	}()
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	until("it waits for ever", func() bool { return !s.healthy() })
	touch := func() error {
		return s.update(func(c *zone.Change) bool { return raise(c, c.Base().Origin(), s.serials, 0) == nil }, func(*zone.Zone, *zone.Delta) bool { return true })
	}
	if err := touch(); err == nil {
		t.Error("it takes updates that another process does not know of")
	}
	old.send(newUpdate(t, "up IN last.example.org. 60 A 192.0.2.2"))
	last := old.text()
	old.stop()
	until("it does not recover", s.healthy)
	if got := zoneText(t, s.served.Current()); got != last {
		t.Errorf("%v", difference(last, got))
	}
	if err := touch(); err != nil || s.readOnly.Load() || s.size.Load() == 0 {
		t.Errorf("%v, read only %t, %d octets", err, s.readOnly.Load(), s.size.Load())
	}
}
