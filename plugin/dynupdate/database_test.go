package dynupdate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
	"go.etcd.io/bbolt"
)

// grow makes some updates, and returns the zone and the database's size after each, the first being those before.
func grow(t *testing.T, b *bed, path string, updates int) (texts []string, sizes []int64) {
	t.Helper()
	note := func() {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		texts, sizes = append(texts, b.text()), append(sizes, info.Size())
	}
	note()
	for i := range updates {
		b.send(newUpdate(t, fmt.Sprintf("up IN h%d.example.org. 60 A 192.0.2.9", i), "up NONE www.example.org. 0 A 192.0.2.1"))
		note()
	}
	return texts, sizes
}

// reopen opens a database as the next process does.
func reopen(path string) (text string, deltas int, err error) {
	return reopenZone(path, "example.org.")
}

func reopenZone(path, zone string) (text string, deltas int, err error) {
	origin, _ := wire.LowerName(zone)
	d, c, err := openDatabase(path, origin, 100)
	if err != nil {
		return "", 0, err
	}
	defer d.unlock()
	defer d.file.Close()
	var lines []string
	w := c.version.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			return "", 0, err
		}
		lines = append(lines, strings.Join(strings.Fields(rr.String()), " "))
	}
	return strings.Join(lines, "\n"), len(c.deltas), nil
}

// TestTornDatabase cuts a database at every octet of its commits: what was whole stays, and no more.
func TestTornDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	b := newBed(t, dir, "database "+path)
	texts, sizes := grow(t, b, path, 3)
	b.stop()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	commits := 0
	for size := sizes[0]; size <= int64(len(whole)); size++ {
		if commits < 3 && size == sizes[commits+1] {
			commits++
		}
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		text, deltas, err := reopen(path)
		if err != nil || sorted(text) != texts[commits] || deltas != commits {
			t.Fatalf("cut at %d of %d: %d deltas, want %d: %v\n%s", size, len(whole), deltas, commits, err, strings.Join(difference(texts[commits], text), "\n"))
		}
		if info, _ := os.Stat(path); info.Size() != sizes[commits] {
			t.Fatalf("cut at %d: %d octets stay, want %d", size, info.Size(), sizes[commits])
		}
	}
	for size := range sizes[0] {
		os.WriteFile(path, whole[:size], 0o600)
		if _, _, err := reopen(path); err == nil {
			t.Fatalf("a snapshot that is cut at %d is taken", size)
		}
	}
}

// TestFlippedDatabase changes each octet of a database: in the last commit, that is cut off; before, the start fails,
// and says where.
func TestFlippedDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	b := newBed(t, dir, "database "+path)
	texts, sizes := grow(t, b, path, 3)
	b.stop()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		for _, bits := range []byte{0x01, 0xff} {
			flipped := bytes.Clone(whole)
			flipped[at] ^= bits
			os.WriteFile(path, flipped, 0o600)
			text, _, err := reopen(path)
			switch {
			case int64(at) >= sizes[2]:
				if err != nil || sorted(text) != texts[2] {
					t.Fatalf("octet %d of the last commit: %v", at, err)
				}
			case err == nil:
				t.Fatalf("octet %d: nothing is found", at)
			case int64(at) >= sizes[0]:
				n := 1
				if int64(at) >= sizes[1] {
					n = 2
				}
				if want := fmt.Sprintf("transaction %d is damaged at offset %d", n, sizes[n-1]); !strings.Contains(err.Error(), want) {
					t.Fatalf("octet %d: %v, want %s", at, err, want)
				}
			}
		}
	}
}

// sorted is lines in order.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// badMedium fails as it is told.
type badMedium struct {
	medium
	writes, syncs, cuts *atomic.Bool
}

var errBad = errors.New("no space left on device")

func (m badMedium) WriteAt(p []byte, off int64) (int, error) {
	if m.writes.Load() {
		n, _ := m.medium.WriteAt(p[:len(p)/2], off)
		return n, errBad
	}
	return m.medium.WriteAt(p, off)
}

func (m badMedium) Sync() error {
	if m.syncs.Load() {
		return errBad
	}
	return m.medium.Sync()
}

func (m badMedium) Truncate(size int64) error {
	if m.cuts.Load() {
		return errBad
	}
	return m.medium.Truncate(size)
}

// TestFailingDatabase: what the disk does not take has not happened, and goes on when there is room again.
func TestFailingDatabase(t *testing.T) {
	var writes, syncs, cuts atomic.Bool
	open, every := openMedium, retryEvery
	defer func() { openMedium, retryEvery = open, every }()
	retryEvery = 20 * time.Millisecond
	openMedium = func(path string, create bool) (medium, error) {
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
	open, every := openMedium, retryEvery
	defer func() { openMedium, retryEvery = open, every }()
	retryEvery = 20 * time.Millisecond
	openMedium = func(path string, create bool) (medium, error) {
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
	if biggest > 3*leastRewrite || info.Size() > 3*leastRewrite {
		t.Errorf("%d octets, at most %d", info.Size(), biggest)
	}
	if _, err := os.Stat(besides(path)); err == nil {
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
	medium
	more *atomic.Pointer[func()]
}

func (m busyMedium) Sync() error {
	if more := m.more.Load(); more != nil {
		(*more)()
	}
	return m.medium.Sync()
}

// TestRewriteUnderLoad: a database is written anew although there is always an update that waits.
func TestRewriteUnderLoad(t *testing.T) {
	var more atomic.Pointer[func()]
	open := openMedium
	defer func() { openMedium = open }()
	openMedium = func(path string, create bool) (medium, error) {
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

// TestOpen: what a database may not be.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	b := newBed(t, dir, "database "+path)
	b.stop()
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	refused := func(options, want string) {
		t.Helper()
		if b, err := tryBed(t, dir, options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", options, err, want)
			if err == nil {
				b.stop()
			}
		}
	}
	refused("database "+filepath.Join(dir, "db"), "are the same file")
	link := filepath.Join(dir, "link")
	if err := os.Link(filepath.Join(dir, "db"), link); err != nil {
		t.Fatal(err)
	}
	refused("database "+link, "are the same file")
	refused("database "+filepath.Join(dir, "no", "zone.db"), "its folder")
	refused("database "+path+"\nmax_records 3", "max_records is 3")
	refused("database "+path+"\nmax_bytes 30", "max_bytes is 30")
	other := filepath.Join(dir, "other")
	os.WriteFile(other, []byte("this is text, and long enough to be something"), 0o600)
	refused("database "+other, "is not one of dynupdate")
	os.WriteFile(other, nil, 0o600) // what was in it is lost: the seed would hide that
	refused("database "+other, "is not one of dynupdate")
	if info, err := os.Stat(other); err != nil || info.Size() != 0 {
		t.Errorf("the empty file is written: %v, %v", info, err)
	}
	origin, _ := wire.LowerName("example.net.")
	v, err := parseSeed(strings.NewReader("@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns.example."), "db", "example.net.")
	if err != nil || string(v.Origin()) != string(origin) {
		t.Fatal(err)
	}
	f, _, err := writeSnapshot(other, newID(), v, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	refused("database "+other, `belongs to zone "example.net."`)
	unlock, ok, err := lockFile(path)
	if err != nil || !ok {
		t.Fatal(err)
	}
	refused("database "+path, "is in use")
	unlock()
	newBed(t, dir, "database "+path)
	for text, want := range map[string]string{
		"": "has no SOA", "@ 60 SOA ns h 1 2 3 4 5\n@ 60 SOA ns h 2 2 3 4 5": "contains more than one SOA",
		"@ 60 SOA ns h 0 2 3 4 5": "serial 0", "@ 60 SOA ns h 1 2 3 4 5\n@ 60 DNSKEY 257 3 13 aaaa": "DNSKEY",
	} {
		os.WriteFile(filepath.Join(dir, "db"), []byte(text), 0o600)
		refused("", want)
	}
}

// A record of another class than IN does not come into the zone (RFC 1035 §5.2).
func TestSeedClass(t *testing.T) {
	v, err := parseSeed(strings.NewReader("@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nx CH TXT y\ny TXT z\n"), "db", "example.org.")
	if err != nil {
		t.Fatal(err)
	}
	if n := v.Records(); n != 3 {
		t.Errorf("%d records", n)
	}
}

// foreign makes a database as CoreDNS has it.
func foreign(t *testing.T, path, origin string, rrs ...string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var records []byte
	for _, text := range rrs {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, dns.Len(rr)+1)
		n, err := dns.PackRR(rr, buf, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, buf[:n]...)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("dynupdate-v1"))
		if err == nil {
			err = b.Put([]byte("origin"), []byte(origin))
		}
		if err == nil {
			err = b.Put([]byte("records"), records)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestTakeOver: a database of CoreDNS is read once, and kept.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	rrs := []string{"example.org. 60 IN SOA ns.example.org. h.example.org. 4711 1 2 3 4", "example.org. 60 IN NS ns.example.org.", "old.example.org. 60 IN A 192.0.2.7"}
	foreign(t, path, "example.org.", rrs...)
	before, _ := os.ReadFile(path)
	b := newBed(t, dir, "database "+path)
	if b.d.store.served.Current().Serial() != 4711 || !strings.Contains(b.text(), "old.example.org. 60 IN A 192.0.2.7") {
		t.Error(b.text())
	}
	b.send(newUpdate(t, "up IN new.example.org. 60 A 192.0.2.9"))
	after := b.text()
	b.stop()
	if kept, err := os.ReadFile(path + ".bbolt"); err != nil || !bytes.Equal(kept, before) {
		t.Errorf("the one that was taken over is not kept: %v", err)
	}
	if again := newBed(t, dir, "database "+path); again.text() != after {
		t.Error(difference(after, again.text()))
	}
	for name, make := range map[string]func(path string){
		"belongs to zone": func(path string) { foreign(t, path, "example.net.", rrs...) },
		"is damaged":      func(path string) { foreign(t, path, "example.org.", rrs...); damage(t, path) },
		"has no data":     func(path string) { empty(t, path) },
	} {
		path := filepath.Join(t.TempDir(), "zone.db")
		make(path)
		before, _ := os.ReadFile(path)
		if _, err := tryBed(t, dir, "database "+path); err == nil || !strings.Contains(err.Error(), name) && name != "is damaged" {
			t.Errorf("%v, want %s", err, name)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(after, before) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// damage changes the records of a bbolt database.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("\x03old\x07example"))
	b[at] = 0xff
	os.WriteFile(path, b, 0o600)
}

func empty(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

// FuzzDatabase: whatever stands in a file, reading it ends, with an error or a zone.
func FuzzDatabase(f *testing.F) {
	v, err := parseSeed(strings.NewReader("@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns.example."), "db", "example.org.")
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "zone.db")
	c := v.Change()
	c.At(v.Origin()).Add(dns.TypeTXT, 60, []byte{1, 'x'})
	next, delta, err := c.Zone()
	if err != nil {
		f.Fatal(err)
	}
	m, size, err := writeSnapshot(path, newID(), next, []*zone.Delta{delta})
	if err != nil {
		f.Fatal(err)
	}
	frame := endFrame(appendTransaction(beginFrame(nil, kindCommit), delta), 0)
	m.WriteAt(frame, size)
	m.Close()
	whole, _ := os.ReadFile(path)
	f.Add(whole)
	f.Add(whole[:size])
	f.Fuzz(func(t *testing.T, b []byte) {
		_, c, _, err := readDatabase("db", memoryMedium{bytes.NewReader(b)}, int64(len(b)), v.Origin(), 10)
		if err == nil && c.version == nil {
			t.Error("neither a zone nor an error")
		}
	})
}

// memoryMedium is a database that is only read.
type memoryMedium struct{ *bytes.Reader }

func (memoryMedium) WriteAt([]byte, int64) (int, error) { return 0, errBad }
func (memoryMedium) Truncate(int64) error               { return errBad }
func (memoryMedium) Sync() error                        { return nil }
func (memoryMedium) Close() error                       { return nil }
