package secondary

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// TestStorage: a zone that is stored is served at once, without a primary, until it expires.
func TestStorage(t *testing.T) {
	out := logtest.Capture(t)
	dir := filepath.Join(t.TempDir(), "zones")
	p := newPrimary(t)
	p.set("example.org.", text(1, "7200 3600 10000", "a A 192.0.2.7", `odd\.name TXT "a\"b" "\200"`, `null NULL \# 3 00ff3b`))
	input := fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir)
	first := begin(t, input)
	becomes(t, first, "a.example.org.", "192.0.2.7")
	path := filepath.Join(dir, "db.example.org")
	eventually.Holds(t, "storing", func() bool { _, err := os.Stat(path); return err == nil })
	first.roster.stop()
	p.down.Store(true)

	second := begin(t, input)
	becomes(t, second, "a.example.org.", "192.0.2.7")
	if !strings.Contains(out.String(), "Loaded: example.org. from "+path) {
		t.Errorf("logged %s", out)
	}
	was, is := first.roster.replica("example.org.").zone.Current(), second.roster.replica("example.org.").zone.Current()
	if a, b := len(recordsOf(was)), len(recordsOf(is)); a != b {
		t.Errorf("%d records of %d", b, a)
	}
	for i, rr := range recordsOf(was) {
		if got := recordsOf(is)[i]; got.String() != rr.String() {
			t.Errorf("got %s, want %s", got, rr)
		}
	}
	second.roster.stop()

	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-10001*time.Second)); err != nil {
		t.Fatal(err)
	}
	third := begin(t, input)
	time.Sleep(50 * time.Millisecond)
	if got := ask(t, third, "a.example.org."); got != "SERVFAIL" {
		t.Errorf("a zone that has expired: %s", got)
	}
	// A look that finds nothing new says that what is stored is right.
	p.down.Store(false)
	notify(t, third, "example.org.", "127.0.0.1")
	becomes(t, third, "a.example.org.", "192.0.2.7")
	eventually.Holds(t, "the file's new time", func() bool {
		info, err := os.Stat(path)
		return err == nil && time.Since(info.ModTime()) < time.Minute
	})
	third.roster.stop()
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	fourth := begin(t, input)
	becomes(t, fourth, "a.example.org.", "192.0.2.7")
	if !strings.Contains(out.String(), "Zone example.org.: what is stored is of no use: ") {
		t.Errorf("logged %s", out)
	}
}

// TestFileNames: each zone has a file of its own, whose name is one that a file may have.
func TestFileNames(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 49)+".", 5)
	escaped := strings.Repeat(strings.Repeat(`\007`, 62)+".", 4)
	met := map[string]string{}
	for zone, want := range map[string]string{
		"example.org.": "db.example.org", ".": "db.", "2/1.example.org.": "db.2%2F1.example.org", long[len(long)-242:]: "db." + long[len(long)-242:len(long)-1],
		long: "", "b" + long[1:]: "", long[:249] + "b.": "", escaped: "", escaped[:len(escaped)-2] + "8.": "",
	} {
		got := fileName(zone)
		if want != "" && got != want || len(got) > longestName || filepath.Base(got) != got || met[got] != "" {
			t.Errorf("%s: %s, of %d octets, which %q has", zone, got, len(got), met[got])
		}
		met[got] = zone
	}
}

// TestStorageOfLongName: a zone whose file would have too long a name is stored, and served from there.
func TestStorageOfLongName(t *testing.T) {
	name := strings.Repeat(strings.Repeat("a,", 25)+".", 4) + "example."
	dir, p := t.TempDir(), newPrimary(t)
	p.set(name, text(1, "7200 3600 10000", "a A 192.0.2.7"))
	input := fmt.Sprintf("secondary %s {\ntransfer from %s\nstorage %s\n}", name, p.addr, dir)
	first := begin(t, input)
	becomes(t, first, "a."+name, "192.0.2.7")
	eventually.Holds(t, "storing", func() bool {
		files, err := os.ReadDir(dir)
		return err == nil && len(files) == 1 && !strings.Contains(files[0].Name(), ".example.")
	})
	first.roster.stop()
	p.down.Store(true)
	becomes(t, begin(t, input), "a."+name, "192.0.2.7")
}

// TestStorageAtStart: what is stored is served from the start on, members of catalogs, too.
func TestStorageAtStart(t *testing.T) {
	dir, p := t.TempDir(), newPrimary(t)
	var hosts []string
	for i := range 5000 {
		hosts = append(hosts, fmt.Sprintf("h%d A 192.0.2.7", i))
	}
	p.set("example.org.", text(1, slow, hosts...))
	p.set("m.example.", text(1, slow, hosts...))
	p.set("catalog.example.", text(1, slow, `version TXT "2"`, "one.zones PTR m.example."))
	input := fmt.Sprintf("secondary example.org {\ntransfer from %[1]s\nstorage %[2]s\n}\nsecondary catalog.example {\ntransfer from %[1]s\ncatalog\nstorage %[2]s\n}", p.addr, dir)
	first := begin(t, input)
	eventually.Holds(t, "storing", func() bool {
		files, err := filepath.Glob(dir + "/db.*[a-z]") // complete ones
		return err == nil && len(files) == 3
	})
	first.roster.stop()
	p.down.Store(true)
	again := begin(t, input)
	for _, name := range []string{"h4999.example.org.", "h4999.m.example."} {
		if got := ask(t, again, name); got != "192.0.2.7" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestStorageKeepsCase: what is stored is read as it is, for signatures of it may come later.
func TestStorageKeepsCase(t *testing.T) {
	dir, p := t.TempDir(), newPrimary(t)
	p.down.Store(true)
	stored := text(1, "7200 3600 10000", "www HTTPS 1 Svc.Example.ORG.")
	if err := os.WriteFile(filepath.Join(dir, "db.example.org"), []byte("$ORIGIN example.org.\n"+stored), 0o600); err != nil {
		t.Fatal(err)
	}
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir))
	var now strings.Builder
	if err := s.roster.replica("example.org.").zone.Current().WriteText(&now); err != nil || !strings.Contains(now.String(), "Svc.Example.ORG.") {
		t.Errorf("%v\n%s", err, now.String())
	}
}

// TestStorageOfOtherPrimary: what is stored and came from another primary is served until the zone comes from the one
// that there is now, whatever its serial.
func TestStorageOfOtherPrimary(t *testing.T) {
	logtest.Capture(t)
	dir, first, second := t.TempDir(), newPrimary(t), newPrimary(t)
	path := filepath.Join(dir, "db.example.org")
	first.set("example.org.", text(9, slow, "a A 192.0.2.9"))
	second.set("example.org.", text(3, slow, "a A 192.0.2.3"))
	second.down.Store(true)
	input := fmt.Sprintf("secondary example.org {\ntransfer from %%s\nstorage %s\n}", dir)
	s := begin(t, fmt.Sprintf(input, first.addr))
	eventually.Holds(t, "storing", func() bool { return readHead(path).serial == 9 })
	s.roster.stop()
	s = begin(t, fmt.Sprintf(input, second.addr))
	if got := ask(t, s, "a.example.org."); got != "192.0.2.9" {
		t.Errorf("at first: %s", got)
	}
	second.down.Store(false)
	becomes(t, s, "a.example.org.", "192.0.2.3")
	eventually.Holds(t, "storing of what is older, but of another primary", func() bool { return readHead(path).serial == 3 })
	s.roster.stop()

	// With both it is a zone that is known.
	second.set("example.org.", text(2, slow, "a A 192.0.2.2"))
	s = begin(t, fmt.Sprintf(input, first.addr+" "+second.addr))
	becomes(t, s, "a.example.org.", "192.0.2.9")
	eventually.Holds(t, "storing of the newer one", func() bool { return readHead(path).serial == 9 })
	if h := readHead(path); h.note != "; from "+first.addr+" "+second.addr {
		t.Errorf("from %q", h.note)
	}
}

// build is a version of example.org.
func build(t *testing.T, serial uint32) *zone.Zone {
	t.Helper()
	parsed, err := file.Parse(strings.NewReader(text(serial, slow)), "example.org.", "db", -1)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Current()
}

// TestStoredIsNewer: of two processes the one that is behind does not store what it has.
func TestStoredIsNewer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db.example.org")
	from := &source{storage: dir, primaries: []string{"192.0.2.1:53"}}
	version := func(serial uint32) *replica {
		r := newReplica("example.org.", from, newRooms())
		r.zone.Replace(build(t, serial))
		return r
	}
	for _, step := range []struct {
		serial  uint32
		useless bool
		want    uint32
	}{{7, false, 7}, {6, false, 7}, {7, false, 7}, {8, false, 8}, {1<<31 + 9, false, 8}, {1<<31 + 7, false, 1<<31 + 7}, {5, true, 5}} {
		r := version(step.serial)
		r.useless = step.useless
		r.keep(true)
		if got := readHead(path); got.serial != step.want || !got.known {
			t.Fatalf("after %d: %d is stored", step.serial, got.serial)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestUnfinished: what a process that was killed left behind is removed, once it is certain that nobody writes it, and
// nothing else.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	old, now := time.Now().Add(-time.Hour), time.Now()
	for name, at := range map[string]time.Time{
		".db.123456.new": old, ".db.7.new": now, "db.example.org": old, "db.example.org.20261125": old, "notes.new": old, ".db.example.org.swp": old,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, fmt.Sprintf("secondary example.org {\ntransfer from 127.0.0.1:1\nstorage %s\n}", dir))
	files, err := os.ReadDir(dir)
	var left []string
	for _, f := range files {
		left = append(left, f.Name())
	}
	if got := strings.Join(left, " "); err != nil || got != ".db.7.new .db.example.org.swp db.example.org db.example.org.20261125 notes.new" {
		t.Errorf("left are %s (%v)", got, err)
	}
}

// TestDismissedWhileStoring: what a replica is storing when its catalog drops the zone is not left behind, and leaves alone
// what the next replica of that name has stored meanwhile.
func TestDismissedWhileStoring(t *testing.T) {
	var text strings.Builder
	text.WriteString("@ 300 SOA ns h 7 7200 3600 10000 60\n@ 300 NS ns\n")
	for i := range 100_000 {
		fmt.Fprintf(&text, "h%d 300 A 192.0.2.7\n", i)
	}
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	z := file.NewZone("example.org.", path)
	if err := z.Load(); err != nil {
		t.Fatal(err)
	}
	for _, next := range []string{"", "what the next one has stored"} {
		dir := t.TempDir()
		r := newReplica("example.org.", &source{storage: dir}, newRooms())
		r.zone.Replace(z.Current())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.keep(true)
		}()
		eventually.Holds(t, "writing", func() bool {
			files, _ := filepath.Glob(filepath.Join(dir, unfinished))
			return len(files) == 1
		})
		r.gone.Store(true)
		r.folder().doom(r.path())
		r.folder().clear()
		if next != "" {
			if err := os.WriteFile(r.path(), []byte(next), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		if got, _ := os.ReadFile(r.path()); string(got) != next {
			t.Errorf("%.40q is stored, want %q", got, next)
		}
		if files, _ := os.ReadDir(dir); len(files) > 1 || next == "" && len(files) > 0 {
			t.Errorf("left are %v", files)
		}
	}
}

// TestStoredWhenItServes: a configuration that does not serve yet leaves what is stored to the one before. When it serves, it
// stores what it has, or notes that it is still right.
func TestStoredWhenItServes(t *testing.T) {
	dir, one, two := t.TempDir(), newPrimary(t), newPrimary(t)
	one.set("example.org.", text(7, slow, "a A 192.0.2.7"))
	two.set("example.org.", text(8, slow, "a A 192.0.2.8"))
	path := filepath.Join(dir, "db.example.org")
	input := func(p *primary) string {
		return fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir)
	}
	becomes(t, begin(t, input(one)), "a.example.org.", "192.0.2.7")
	eventually.Holds(t, "storing", func() bool { return readHead(path).serial == 7 })
	for _, tc := range []struct {
		from         *primary
		has          string
		stored, then uint32
	}{{two, "192.0.2.8", 7, 8}, {two, "192.0.2.8", 8, 8}, {one, "192.0.2.7", 8, 7}} {
		listens := make(chan struct{})
		s := handler(t, "secondary", input(tc.from)).(Secondary)
		s.roster.rooms.listens = listens
		old := time.Now().Add(-time.Minute)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		s.roster.start(nil)
		t.Cleanup(s.roster.stop)
		becomes(t, s, "a.example.org.", tc.has)
		eventually.Holds(t, "a look at the primary", func() bool { return s.roster.replicas["example.org."].checked.Load() })
		at := func() time.Time {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.ModTime()
		}
		if got := readHead(path).serial; got != tc.stored || !at().Equal(old) {
			t.Errorf("before it serves, %d is stored, of %v", got, at())
		}
		close(listens)
		eventually.Holds(t, "storing when it serves", func() bool { return readHead(path).serial == tc.then && at().After(old) })
	}
}

// TestStoredLater: what could not be stored is stored with the next look at the primary, also if nothing is new by then. The
// log tells once that it cannot be, and that it is again.
func TestStoredLater(t *testing.T) {
	out := logtest.Capture(t)
	dir := filepath.Join(t.TempDir(), "zones")
	r := newReplica("example.org.", &source{primaries: []string{"192.0.2.1:53"}, storage: dir}, newRooms())
	for serial := uint32(1); serial < 4; serial++ {
		r.zone.Replace(build(t, serial))
		if serial == 2 { // no file can be written into it
			if err := os.Rename(dir, dir+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.keep(true)
		if serial == 2 {
			r.keep(false)
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir+".old", dir); err != nil {
				t.Fatal(err)
			}
			r.keep(false)
		}
		if got := readHead(r.path()).serial; got != serial {
			t.Errorf("%d is stored, not %d", got, serial)
		}
	}
	if got := out.String(); strings.Count(got, "is not stored") != 1 || strings.Count(got, "[INFO] plugin/secondary: Zone example.org. is stored again") != 1 {
		t.Errorf("the log has %q", got)
	}
}

// TestDiskDoesNotAnswer: zones are served, and follow their primary, while the disk that they are stored on does not answer, and
// end with their server. When it does, what they are by then is stored.
func TestDiskDoesNotAnswer(t *testing.T) {
	out := logtest.Capture(t)
	usual := diskPatience
	diskPatience = 200 * time.Millisecond
	t.Cleanup(func() { diskPatience = usual })
	dir, p := t.TempDir(), newPrimary(t)
	var names []string
	for i := range maxTransfers + mostStores + 1 {
		names = append(names, fmt.Sprintf("z%d.example.", i))
	}
	serve := func(serial int) {
		for _, name := range names {
			p.set(name, text(serial, slow, fmt.Sprintf("a A 192.0.2.%d", serial)))
		}
	}
	s := handler(t, "secondary", fmt.Sprintf("secondary %s {\ntransfer from %s\nstorage %s\n}", strings.Join(names, " "), p.addr, dir)).(Secondary)
	serve(7)
	folderAt(dir).filing.Lock() // as a write that does not come to its end
	s.roster.start(nil)
	for _, name := range names {
		becomes(t, s, "a."+name, "192.0.2.7")
	}
	eventually.Holds(t, "a line in the log", func() bool { return strings.Contains(out.String(), "does not answer") })
	serve(8)
	for _, name := range names {
		s.roster.replicas[name].notify(netip.MustParseAddr("127.0.0.1"))
		becomes(t, s, "a."+name, "192.0.2.8")
	}
	if n := strings.Count(out.String(), "does not answer"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, out.String())
	}
	folderAt(dir).filing.Unlock()
	eventually.Holds(t, "storing what came meanwhile", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return readHead(s.roster.replicas[name].path()).serial != 8 })
	})
	folderAt(dir).filing.Lock()
	serve(9)
	for _, name := range names {
		s.roster.replicas[name].notify(netip.MustParseAddr("127.0.0.1"))
		becomes(t, s, "a."+name, "192.0.2.9")
	}
	s.roster.stop()
	folderAt(dir).filing.Unlock()
	for _, name := range names {
		if begun := s.roster.replicas[name].storing; begun != nil {
			<-begun.done
		}
	}
}

// TestInheritedWhileStored: what waits to be stored when the next configuration takes over the zone is not stored over what that
// one has stored; should it come to nothing, it is stored then.
func TestInheritedWhileStored(t *testing.T) {
	dir, p := t.TempDir(), newPrimary(t)
	p.set("example.org.", text(7, slow, "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir))
	r := s.roster.replicas["example.org."]
	eventually.Holds(t, "the file", func() bool { return readHead(r.path()).serial == 7 })
	unfinished := func() int {
		files, _ := filepath.Glob(filepath.Join(dir, unfinished))
		return len(files)
	}
	r.folder().filing.Lock()
	p.set("example.org.", text(8, slow, "a A 192.0.2.8"))
	r.notify(netip.MustParseAddr("127.0.0.1"))
	eventually.Holds(t, "a file that is written", func() bool { return unfinished() == 1 })
	r.mu.Lock()
	r.heir = newReplica(r.name(), r.source, r.rooms)
	r.mu.Unlock()
	const its = "; of the next configuration\n"
	if err := os.WriteFile(r.path(), []byte(its), 0o644); err != nil {
		t.Fatal(err)
	}
	r.folder().filing.Unlock()
	eventually.Holds(t, "the end of storing", func() bool { return unfinished() == 0 })
	if got, err := os.ReadFile(r.path()); string(got) != its {
		t.Errorf("got %s, %v", got, err)
	}
	r.part(true)
	r.notify(netip.MustParseAddr("127.0.0.1"))
	eventually.Holds(t, "the file", func() bool { return readHead(r.path()).serial == 8 })
}

// TestStoredInTheFuture: what was stored while the clock was ahead is served for the expire time from now on, not until long
// after.
func TestStoredInTheFuture(t *testing.T) {
	logtest.Capture(t)
	path, ahead := filepath.Join(t.TempDir(), "db.example.org"), time.Now().Add(time.Hour)
	if err := os.WriteFile(path, []byte(text(1, "7200 3600 2", "a A 192.0.2.7")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, ahead, ahead); err != nil {
		t.Fatal(err)
	}
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from 127.0.0.1:1\nstorage %s\n}", filepath.Dir(path)))
	if got := ask(t, s, "a.example.org."); got != "192.0.2.7" {
		t.Errorf("at first: %s", got)
	}
	becomes(t, s, "a.example.org.", "SERVFAIL")
}
