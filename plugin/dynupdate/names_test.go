package dynupdate

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// openedMedium counts those that are open.
type openedMedium struct {
	badMedium
	open   *atomic.Int32
	closed atomic.Bool
}

func (m *openedMedium) Close() error {
	if !m.closed.Swap(true) {
		m.open.Add(-1)
	}
	return m.badMedium.Close()
}

// TestOpenFilesKeepTheirNames: where no file takes the name of one that is open, as on some file systems of Windows, the
// database is closed before it is replaced. When it cannot be replaced for another reason, it is when that has passed.
func TestOpenFilesKeepTheirNames(t *testing.T) {
	var syncs, none, stuck atomic.Bool
	var opened, refused, moved atomic.Int32
	open, every, move, keeps := database.TheDisk.Open, retryEvery, database.TheDisk.Rename, database.TheDisk.KeepsNames
	defer func() {
		database.TheDisk.Open, retryEvery, database.TheDisk.Rename, database.TheDisk.KeepsNames = open, every, move, keeps
	}()
	retryEvery, database.TheDisk.KeepsNames = 20*time.Millisecond, true
	database.TheDisk.Open = func(path string, create bool) (database.Medium, error) {
		f, err := open(path, create)
		if err == nil {
			opened.Add(1)
		}
		return &openedMedium{badMedium: badMedium{f, &none, &syncs, &none}, open: &opened}, err
	}
	database.TheDisk.Rename = func(from, to string) error {
		if opened.Load() > 1 || stuck.Load() { // from is open, too
			refused.Add(1)
			return errors.New("sharing violation")
		}
		moved.Add(1)
		return move(from, to)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	b := newBed(t, dir, "database "+path)
	for i, alsoStuck := range []bool{false, true} {
		before, refusedBefore := moved.Load(), refused.Load()
		stuck.Store(alsoStuck)
		syncs.Store(true) // so that it is written anew
		add := newUpdate(t, fmt.Sprintf("up IN h%d.example.org. 60 A 192.0.2.9", i))
		if reply := b.send(add); reply.Rcode != dns.RcodeServerFailure {
			t.Fatalf("%d: %v", i, reply)
		}
		syncs.Store(false)
		if alsoStuck { // two refusals are of one attempt, while the file before is open
			eventually.Holds(t, "another attempt", func() bool { return refused.Load() > refusedBefore+2 })
			if b.d.Ready() || moved.Load() != before {
				t.Error("it is ready, and was not replaced")
			}
			stuck.Store(false)
		}
		eventually.Holds(t, "recovery", b.d.Ready)
		if moved.Load() != before+1 || refused.Load() == refusedBefore {
			t.Errorf("%d: replaced %d times, after %d refusals", i, moved.Load()-before, refused.Load()-refusedBefore)
		}
		if reply := b.send(add); reply.Rcode != 0 {
			t.Fatalf("%d: %v", i, reply)
		}
	}
	after := b.text()
	b.stop()
	if text, _, err := reopen(path); err != nil || sorted(text) != after {
		t.Errorf("%v: %v", err, difference(after, text))
	}
	if n := opened.Load(); n != 0 {
		t.Errorf("%d files stay open", n)
	}
}
