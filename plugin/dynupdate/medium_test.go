package dynupdate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// badMedium fails as it is told.
type badMedium struct {
	database.Medium
	writes, syncs, cuts *atomic.Bool
}

var errBad = errors.New("no space left on device")

func (m badMedium) WriteAt(p []byte, off int64) (int, error) {
	if m.writes.Load() {
		n, _ := m.Medium.WriteAt(p[:len(p)/2], off)
		return n, errBad
	}
	return m.Medium.WriteAt(p, off)
}

func (m badMedium) Sync() error {
	if m.syncs.Load() {
		return errBad
	}
	return m.Medium.Sync()
}

func (m badMedium) Truncate(size int64) error {
	if m.cuts.Load() {
		return errBad
	}
	return m.Medium.Truncate(size)
}

// TestFailingDatabase: what the disk does not take has not happened, and goes on when there is room again.
func TestFailingDatabase(t *testing.T) {
	var writes, syncs, cuts atomic.Bool
	open, every := database.TheDisk.Open, retryEvery
	defer func() { database.TheDisk.Open, retryEvery = open, every }()
	retryEvery = 20 * time.Millisecond
	database.TheDisk.Open = func(path string, create bool) (database.Medium, error) {
		f, err := open(path, create)
		return badMedium{f, &writes, &syncs, &cuts}, err
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	b := newBed(t, dir, "database "+path)
	for i, fails := range [][]*atomic.Bool{{&writes}, {&syncs}, {&writes, &cuts}, {&syncs, &cuts}} {
		before := b.text()
		for _, f := range fails {
			f.Store(true)
		}
		add := newUpdate(t, fmt.Sprintf("up IN h%d.example.org. 60 A 192.0.2.9", i))
		add.SetEdns0(1232, false)
		reply := b.send(add)
		if reply.Rcode != dns.RcodeServerFailure || b.text() != before {
			t.Fatalf("%d: %v", i, reply)
		}
		if opt := reply.IsEdns0(); opt == nil || len(opt.Option) != 1 {
			t.Errorf("%d: there is no extended error", i)
		}
		if b.d.Ready() {
			t.Errorf("%d: ready", i)
		}
		if reply := b.send(newUpdate(t, "up IN other.example.org. 60 A 192.0.2.9")); reply.Rcode != dns.RcodeServerFailure {
			t.Errorf("%d: %v", i, reply)
		}
		for _, f := range fails {
			f.Store(false)
		}
		for deadline := time.Now().Add(5 * time.Second); !b.d.Ready(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d: it does not recover", i)
			}
		}
		if reply := b.send(add); reply.Rcode != 0 || len(difference(before, b.text())) != 1 { // the same request again
			t.Fatalf("%d: %v %v", i, reply, difference(before, b.text()))
		}
	}
	after := b.text()
	b.stop()
	if text, _, err := reopen(path); err != nil || sorted(text) != after {
		t.Errorf("%v: %v", err, difference(after, text))
	}
}

// TestReplayToFailingDatabase: a request that was handled before the database failed does nothing when it comes again,
// while it fails and afterwards.
func TestReplayToFailingDatabase(t *testing.T) {
	var writes, none atomic.Bool
	open, every := database.TheDisk.Open, retryEvery
	defer func() { database.TheDisk.Open, retryEvery = open, every }()
	retryEvery = 20 * time.Millisecond
	database.TheDisk.Open = func(path string, create bool) (database.Medium, error) {
		f, err := open(path, create)
		return badMedium{f, &writes, &none, &none}, err
	}
	dir := t.TempDir()
	b := newBed(t, dir, "database "+filepath.Join(dir, "zone.db"))
	recorded := newUpdate(t, "up IN a.example.org. 60 A 192.0.2.9")
	for _, m := range []*dns.Msg{recorded, newUpdate(t, "up ANY a.example.org. 0 ANY")} {
		if reply := b.send(m); reply.Rcode != dns.RcodeSuccess {
			t.Fatal(reply)
		}
	}
	before := b.text()
	writes.Store(true)
	for _, m := range []*dns.Msg{newUpdate(t, "up IN b.example.org. 60 A 192.0.2.9"), recorded} {
		if reply := b.send(m); reply.Rcode != dns.RcodeServerFailure {
			t.Fatal(reply)
		}
	}
	writes.Store(false)
	for deadline := time.Now().Add(5 * time.Second); !b.d.Ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not recover")
		}
	}
	if reply := b.send(recorded); reply.Rcode != dns.RcodeSuccess || b.text() != before {
		t.Errorf("%v %v", reply, difference(before, b.text()))
	}
}

// TestRewrite: a database that has grown is written anew, and loses nothing on the way; what changed is known after it,
// too.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	b := newBed(t, dir, "database "+path+"\njournal 50")
	long := strings.Repeat("x", 200) + " " + strings.Repeat("y", 200)
	var biggest int64
	for i := range 4000 {
		b.send(newUpdate(t, fmt.Sprintf("up ANY h%d.example.org. 0 TXT", i%7), fmt.Sprintf("up IN h%d.example.org. 60 TXT %s %d", i%7, long, i)))
		if i%50 == 0 {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			biggest = max(biggest, info.Size())
		}
	}
	after := b.text()
	serial := b.d.store.served.Current().Serial()
	b.stop()
	info, _ := os.Stat(path)
	if most := int64(3 << 20); biggest > most || info.Size() > most { // changes of 1 MiB are left as they are
		t.Errorf("%d octets, at most %d", info.Size(), biggest)
	}
	if _, err := os.Stat(database.Beside(path)); err == nil {
		t.Error("a file is left over")
	}
	again := newBed(t, dir, "database "+path+"\njournal 50")
	if again.text() != after {
		t.Error(difference(after, again.text()))
	}
	if deltas := again.d.Since("example.org.", serial-50, again.d.store.served.Current()); len(deltas) != 50 {
		t.Errorf("%d deltas are known", len(deltas))
	}
}

// busyMedium calls more before it syncs.
type busyMedium struct {
	database.Medium
	more *atomic.Pointer[func()]
}

func (m busyMedium) Sync() error {
	if more := m.more.Load(); more != nil {
		(*more)()
	}
	return m.Medium.Sync()
}

// TestRewriteUnderLoad: a database is written anew although there is always an update that waits.
func TestRewriteUnderLoad(t *testing.T) {
	var more atomic.Pointer[func()]
	open := database.TheDisk.Open
	defer func() { database.TheDisk.Open = open }()
	database.TheDisk.Open = func(path string, create bool) (database.Medium, error) {
		f, err := open(path, create)
		if create {
			return f, err // the database that is written anew: there is no load then
		}
		return busyMedium{f, &more}, err
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	newBed(t, dir, "database "+path).stop()
	b := newBed(t, dir, "database "+path)
	text := strings.Repeat(strings.Repeat("x", 200)+" ", 40)
	const most = 300
	var n atomic.Int32
	var updates sync.WaitGroup
	send := func() {
		m := newUpdate(t, "up ANY h.example.org. 0 TXT", fmt.Sprintf("up IN h.example.org. 60 TXT %s %d", text, n.Add(1)))
		updates.Go(func() { b.send(m) })
	}
	next := func() { // before an update is durable, the next one has come
		if n.Load() == most {
			return
		}
		send()
		for waits := false; !waits && !t.Failed(); time.Sleep(100 * time.Microsecond) {
			b.d.store.mu.Lock()
			waits = b.d.store.waiting != nil
			b.d.store.mu.Unlock()
		}
	}
	more.Store(&next)
	send()
	updates.Wait()
	if n.Load() == most {
		t.Errorf("%d octets, and never less", b.d.store.size.Load())
	}
}

// A database that somebody removed is written anew with the next update, whose client is told that it is kept. Where the
// folder has gone, too, updates fail until it is back.
func TestRemovedDatabase(t *testing.T) {
	every := retryEvery
	defer func() { retryEvery = every }()
	retryEvery = 20 * time.Millisecond
	dir, home := t.TempDir(), filepath.Join(t.TempDir(), "home")
	path := filepath.Join(home, "zone.db")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, dir, "database "+path)
	add := func(host string) int { return b.send(newUpdate(t, "up IN "+host+".example.org. 60 A 192.0.2.9")).Rcode }
	if code := add("before"); code != dns.RcodeSuccess {
		t.Fatal(code)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if code := add("removed"); code != dns.RcodeSuccess {
		t.Fatalf("without its file: %s", dns.RcodeToString[code])
	}
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	if code := add("nowhere"); code != dns.RcodeServerFailure {
		t.Fatalf("without its folder: %s", dns.RcodeToString[code])
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "it recovers", b.d.Ready)
	if code := add("after"); code != dns.RcodeSuccess {
		t.Fatalf("with its folder: %s", dns.RcodeToString[code])
	}
	b.stop()
	again, _, err := reopen(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"before", "removed", "after"} {
		if !strings.Contains(again, host+".example.org.") {
			t.Errorf("the next process does not have %s:\n%s", host, again)
		}
	}
}
