package secondary

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// quick has nobody wait long for a disk in this test.
func quick(t *testing.T) {
	usual := diskPatience
	diskPatience = 200 * time.Millisecond
	t.Cleanup(func() { diskPatience = usual })
}

// promptly fails if f waits for something.
func promptly(t *testing.T, what string, f func()) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Errorf("%s waits for the disk", what)
	}
}

// A member that a catalog lists no more, while the disk does not answer, holds up neither others nor the end. Its file is
// removed when the disk answers.
func TestForgottenWhileTheDiskDoesNotAnswer(t *testing.T) {
	logtest.Capture(t)
	quick(t)
	dir, p := t.TempDir(), newPrimary(t)
	p.set("one.test.", text(7, slow, "a A 192.0.2.7"))
	p.set("two.test.", text(7, slow, "a A 192.0.2.7"))
	p.set("a.example.", fmt.Sprintf(catalogHead, 1)+"m.zones PTR one.test.\n")
	s := handler(t, "secondary", fmt.Sprintf("secondary a.example {\ntransfer from %s\ncatalog\nstorage %s\n}", p.addr, dir)).(Secondary)
	s.roster.start(nil)
	becomes(t, s, "a.one.test.", "192.0.2.7")
	path := s.roster.replica("one.test.").path()
	eventually.Holds(t, "the file", func() bool { return readHead(path).serial == 7 })

	folderAt(dir).filing.Lock() // as a write that does not come to its end
	p.set("a.example.", fmt.Sprintf(catalogHead, 2)+"m2.zones PTR two.test.\n")
	s.roster.replica("a.example.").notify(netip.MustParseAddr("127.0.0.1"))
	becomes(t, s, "a.two.test.", "192.0.2.7")
	promptly(t, "a notification", func() { s.roster.replica("a.example.") })
	promptly(t, "the end", s.roster.stop)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	folderAt(dir).filing.Unlock()
	eventually.Holds(t, "no file", func() bool { _, err := os.Stat(path); return errors.Is(err, fs.ErrNotExist) })
}

// A member that is another zone of the same name is stored, whatever the serial of the one before, and its file stays,
// though that one's was still to be removed.
func TestResetWhileTheDiskDoesNotAnswer(t *testing.T) {
	logtest.Capture(t)
	quick(t)
	dir, p := t.TempDir(), newPrimary(t)
	p.set("one.test.", text(7, slow, "a A 192.0.2.7"))
	p.set("a.example.", fmt.Sprintf(catalogHead, 1)+"m.zones PTR one.test.\n")
	s := begin(t, fmt.Sprintf("secondary a.example {\ntransfer from %s\ncatalog\nstorage %s\n}", p.addr, dir))
	becomes(t, s, "a.one.test.", "192.0.2.7")
	path, f := s.roster.replica("one.test.").path(), folderAt(dir)
	eventually.Holds(t, "the file", func() bool { return readHead(path).serial == 7 })
	for serial := range 5 { // it is not known who of both has the folder first
		f.filing.Lock()
		p.set("one.test.", text(1+serial, slow, fmt.Sprintf("a A 192.0.2.%d", 10+serial)))
		p.set("a.example.", fmt.Sprintf(catalogHead, 2+serial)+fmt.Sprintf("m%d.zones PTR one.test.\n", serial))
		s.roster.replica("a.example.").notify(netip.MustParseAddr("127.0.0.1"))
		becomes(t, s, "a.one.test.", fmt.Sprintf("192.0.2.%d", 10+serial))
		f.filing.Unlock()
		eventually.Holds(t, "the file of the next one", func() bool { return readHead(path).serial == uint32(1+serial) })
	}
	f.clear()
	if got := readHead(path).serial; got != 5 {
		t.Errorf("it has serial %d", got)
	}
}

// Zones are stored in one folder while the disk of another one does not answer, however many wait for that.
func TestOneFolderDoesNotAnswer(t *testing.T) {
	out := logtest.Capture(t)
	quick(t)
	hangs, good, p := t.TempDir(), t.TempDir(), newPrimary(t)
	var names []string
	for i := range mostStores + 1 {
		names = append(names, fmt.Sprintf("z%d.example.", i))
		p.set(names[i], text(7, slow, "a A 192.0.2.7"))
	}
	p.set("good.test.", text(7, slow, "a A 192.0.2.7"))
	folderAt(hangs).filing.Lock()
	s := begin(t, fmt.Sprintf("secondary %s {\ntransfer from %s\nstorage %s\n}\nsecondary good.test {\ntransfer from %s\nstorage %s\n}",
		strings.Join(names, " "), p.addr, hangs, p.addr, good))
	for _, name := range names {
		becomes(t, s, "a."+name, "192.0.2.7")
	}
	out.Await(t, "does not answer")
	for serial := 7; serial < 9; serial++ {
		p.set("good.test.", text(serial, slow, "a A 192.0.2.7"))
		s.roster.replica("good.test.").notify(netip.MustParseAddr("127.0.0.1"))
		path := s.roster.replica("good.test.").path()
		eventually.Holds(t, "the file in the other folder", func() bool { return readHead(path).serial == uint32(serial) })
	}
	folderAt(hangs).filing.Unlock()
}

// A zone is stored over the file of another one of its name that is still to be removed, also if that one's serial is
// newer, and stays stored then.
func TestStoredOverDoomed(t *testing.T) {
	logtest.Capture(t)
	from := &source{storage: t.TempDir(), primaries: []string{"192.0.2.1:53"}}
	var r *replica
	for _, serial := range []uint32{7, 6} {
		r = newReplica("example.org.", from, newRooms())
		if serial == 6 {
			r.folder().doom(r.path())
			if r.load(); r.zone.Current() != nil {
				t.Error("what another zone had is served")
			}
		}
		r.zone.Replace(build(t, serial))
		r.keep(true)
		if got := readHead(r.path()); got.serial != serial {
			t.Fatalf("%d is stored instead of %d", got.serial, serial)
		}
	}
	if r.folder().clear(); readHead(r.path()).serial != 6 {
		t.Error("what is stored was removed")
	}
}

// A zone whose catalog drops it while its file takes its place, or is being made durable there, leaves no file behind.
func TestDismissedWhenStored(t *testing.T) {
	logtest.Capture(t)
	from := &source{storage: t.TempDir(), primaries: []string{"192.0.2.1:53"}}
	for i := range 50 {
		r := newReplica(fmt.Sprintf("z%d.example.", i), from, newRooms())
		r.zone.Replace(build(t, 7))
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.keep(true)
		}()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			if _, err := os.Stat(r.path()); err == nil {
				break
			}
		}
		r.gone.Store(true)
		r.folder().doom(r.path())
		<-done
		if r.folder().clear(); readHead(r.path()).known {
			t.Fatalf("the file of zone %d is left", i)
		}
	}
}

// A folder is the same one however it is told: two catalogs, one of which takes over a member of the other, may do that
// differently.
func TestFolderToldInTwoWays(t *testing.T) {
	logtest.Capture(t)
	dir := t.TempDir()
	r := newReplica("example.org.", &source{storage: dir + "/", primaries: []string{"192.0.2.1:53"}}, newRooms())
	r.folder().doom(r.path())
	r = newReplica("example.org.", &source{storage: dir, primaries: []string{"192.0.2.1:53"}}, newRooms())
	r.zone.Replace(build(t, 7))
	r.keep(true)
	if folderAt(dir + "/").clear(); readHead(r.path()).serial != 7 {
		t.Error("what is stored was removed")
	}
}
