package dynupdate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// names is which file has a database's name on the disk, when the folder may not be synced for a while.
type names struct {
	path  string
	fails atomic.Bool
	count atomic.Int32
	is    atomic.Pointer[os.File]
}

var errFolder = errors.New("input/output error")

// watchNames has folders synced as names says, until the test ends.
func watchNames(t *testing.T, path string) *names {
	n, sync, every := &names{path: path}, database.TheDisk.SyncFolder, retryEvery
	t.Cleanup(func() { database.TheDisk.SyncFolder, retryEvery = sync, every })
	retryEvery = 20 * time.Millisecond
	database.TheDisk.SyncFolder = func(path string) error {
		if n.count.Add(1); n.fails.Load() {
			return errFolder
		}
		if f, err := os.Open(n.path); err == nil {
			t.Cleanup(func() { f.Close() })
			n.is.Store(f)
		}
		return sync(path)
	}
	return n
}

// has reports whether b stands in the file that would be there after a crash. A file that was written anew may have the name by then, but not on
// the disk.
func (n *names) has(t *testing.T, b []byte) bool {
	f := n.is.Load()
	if f == nil {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, info.Size())
	if _, err := f.ReadAt(all, 0); err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(all, b)
}

// TestFolderFails: an update is acknowledged only if the file that it is in has the database's name on the disk, too. Else a
// crash would bring back the file before, without the update.
func TestFolderFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	n := watchNames(t, path)
	b := newBed(t, dir, "log off\ndatabase "+path)
	text := strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 250)+" ", 200), " ")
	acknowledged := func(i int) bool {
		before := b.text()
		number := fmt.Sprintf("number%d", i)
		code := b.send(newUpdate(t, "up ANY h.example.org. 0 TXT", fmt.Sprintf("up IN h.example.org. 60 TXT %s %s", text, number))).Rcode
		switch {
		case code == dns.RcodeServerFailure && b.text() == before:
			return false
		case code != dns.RcodeSuccess:
			t.Fatalf("update %d: %s; the zone has changed: %v", i, dns.RcodeToString[code], b.text() != before)
		case !n.has(t, append([]byte{byte(len(number))}, number...)):
			t.Fatalf("update %d is acknowledged, and is in a file that a crash would take away", i)
		}
		return true
	}
	n.fails.Store(true)
	i := 0
	for acknowledged(i) { // until the database has grown, and is written anew
		if i++; i == 60 {
			t.Fatal("no update fails, though the folder cannot be synced")
		}
	}
	n.fails.Store(false)
	eventually.Holds(t, "it recovers", b.d.Ready)
	if !acknowledged(i) {
		t.Error("an update fails when the folder can be synced again")
	}
	last := b.text()
	b.stop()
	if text, _, err := reopen(path); err != nil || sorted(text) != last {
		t.Errorf("%v: %v", err, difference(last, text))
	}
}

// TestFolderFailsAtStart: a database that cannot be made durable does not begin.
func TestFolderFailsAtStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	n := watchNames(t, path)
	n.fails.Store(true)
	if b, err := tryBed(t, dir, "database "+path); !errors.Is(err, errFolder) {
		t.Errorf("it begins: %v %v", b, err)
	}
	stores.Lock()
	s := stores.all[path]
	stores.Unlock()
	if s != nil {
		abandon(s, claim{})
	}
}

// TestReadIsDurable: a database is synced when it is read, as the process before may have been killed before it did that:
// what is served then is not to be gone after a crash. Where that fails it is written anew before the next update.
func TestReadIsDurable(t *testing.T) {
	var syncs, fails, none atomic.Bool
	open := database.TheDisk.Open
	defer func() { database.TheDisk.Open = open }()
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	n := watchNames(t, path)
	newBed(t, dir, "database "+path).stop()
	database.TheDisk.Open = func(path string, create bool) (database.Medium, error) {
		f, err := open(path, create)
		if create {
			return f, err
		}
		return countedMedium{badMedium{f, &none, &fails, &none}, &syncs}, err
	}
	for _, bad := range []bool{false, true} {
		syncs.Store(false)
		fails.Store(bad)
		before := n.count.Load()
		was, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		b := newBed(t, dir, "database "+path)
		if !syncs.Load() || !bad && n.count.Load() == before {
			t.Errorf("it is served, and may not be on the disk; the file is synced: %v", syncs.Load())
		}
		if code := b.send(newUpdate(t, fmt.Sprintf("up IN h%v.example.org. 60 A 192.0.2.9", bad))).Rcode; code != dns.RcodeSuccess {
			t.Errorf("an update: %s", dns.RcodeToString[code])
		}
		after := b.text()
		b.stop()
		if is, _ := os.Stat(path); os.SameFile(was, is) == bad {
			t.Errorf("a sync fails: %v; the file is the one before: %v", bad, !bad)
		}
		fails.Store(false)
		if text, _, err := reopen(path); err != nil || sorted(text) != after {
			t.Errorf("%v: %v", err, difference(after, text))
		}
	}
}

// countedMedium notes that it is synced.
type countedMedium struct {
	badMedium
	synced *atomic.Bool
}

func (m countedMedium) Sync() error {
	m.synced.Store(true)
	return m.badMedium.Sync()
}

// TestMadeMeanwhile: of two processes that begin at the same time, and find no database, one makes it. The other one does not
// begin: it would take the file away from the first, which goes on to acknowledge updates.
func TestMadeMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone.db")
	v, err := parseSeed(strings.NewReader(seedText), "db", "example.org.")
	if err == nil {
		v, err = v.Growing()
	}
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *store {
		return newStore("example.org.", path, v, nil, database.New(path, v.Origin()), journalLimits{})
	}
	first, second := begin(), begin()
	if err := first.create(); err != nil {
		t.Fatal(err)
	}
	defer first.db.Close()
	was, _ := os.Stat(path)
	for _, foreign := range []bool{false, true} { // what was there when it was read
		second.foreign = foreign
		if err := second.create(); !errors.Is(err, database.ErrInUse) {
			t.Errorf("the second one: %v", err)
		}
		if is, _ := os.Stat(path); !os.SameFile(is, was) {
			t.Error("the database of the first one is gone")
		}
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("%d files are in the folder", len(all))
	}
}
