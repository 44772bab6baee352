package dynupdate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

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

// TestLockedFileKeepsItsName: who waits for a lock may get that of a file which another one has taken the place of.
func TestLockedFileKeepsItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone.db")
	create := func(path string) *os.File {
		f, err := openFile(path, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := create(path), create(besides(path))
	if is, err := isAt(first, path); !is || err != nil {
		t.Errorf("untouched: %t, %v", is, err)
	}
	if err := rename(besides(path), path); err != nil {
		t.Fatal(err)
	}
	if is, err := isAt(first, path); is || err != nil {
		t.Errorf("the one before: %t, %v", is, err)
	}
	if is, err := isAt(second, path); !is || err != nil {
		t.Errorf("the one in its place: %t, %v", is, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if is, err := isAt(second, path); is || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %t, %v", is, err)
	}
}

// TestOpenFilesKeepTheirNames: where no file takes the name of one that is open, as on some file systems of Windows, the
// database is closed before it is replaced. When it cannot be replaced for another reason, it is when that has passed.
func TestOpenFilesKeepTheirNames(t *testing.T) {
	var syncs, none, stuck atomic.Bool
	var opened, refused, moved atomic.Int32
	open, every, move, keeps := openMedium, retryEvery, moveTo, keepsNames
	defer func() { openMedium, retryEvery, moveTo, keepsNames = open, every, move, keeps }()
	retryEvery, keepsNames = 20*time.Millisecond, true
	openMedium = func(path string, create bool) (medium, error) {
		f, err := open(path, create)
		if err == nil {
			opened.Add(1)
		}
		return &openedMedium{badMedium: badMedium{f, &none, &syncs, &none}, open: &opened}, err
	}
	moveTo = func(from, to string) error {
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
