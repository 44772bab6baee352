package secondary

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

const catalogHead = "$TTL 300\n@ SOA invalid. invalid. %d 7200 3600 1209600 300\n@ NS invalid.\nversion TXT \"2\"\n"

// TestCatalog follows a catalog through its versions.
func TestCatalog(t *testing.T) {
	out := logtest.Capture(t)
	dir := t.TempDir()
	stored := filepath.Join(dir, "db.one.test")
	var gone atomic.Int64 // how often it was made durable that it is
	syncFolder = func(path string) error {
		if _, err := os.Stat(stored); os.IsNotExist(err) && filepath.Dir(path) == dir {
			gone.Add(1)
		}
		return zonefile.SyncFolder(path)
	}
	t.Cleanup(func() { syncFolder = zonefile.SyncFolder })
	p := newPrimary(t)
	for i, name := range []string{"one.test.", "two.test.", "three.example.", "own.test."} {
		p.set(name, text(1, slow, fmt.Sprintf("a A 192.0.2.%d", i+1)))
	}
	version := func(serial int, lines ...string) {
		p.set("catalog.example.", fmt.Sprintf(catalogHead, serial)+strings.Join(lines, "\n")+"\n")
	}
	version(1, "m1.zones PTR one.test.", "m3.zones PTR three.example.", "m4.zones PTR own.test.")
	s := begin(t, fmt.Sprintf("secondary catalog.example {\ntransfer from %s\ncatalog test\nstorage %s\n}\nsecondary own.test {\ntransfer from %s\n}", p.addr, dir, p.addr))
	becomes(t, s, "a.one.test.", "192.0.2.1")
	becomes(t, s, "a.own.test.", "192.0.2.4")
	step := func(want ...string) {
		t.Helper()
		for _, w := range want {
			out.Await(t, w)
		}
	}
	step("Parsed catalog zone catalog.example. with 3 member zones", "Added catalog member zone one.test. from catalog catalog.example.",
		"Skipped 1 member zones from catalog catalog.example.: outside configured member zones", "Skipping catalog member zone own.test. from catalog.example.: zone already exists")
	if got := ask(t, s, "a.three.example."); got != "NOTZONE" {
		t.Errorf("a member outside: %s", got)
	}
	eventually.Holds(t, "storing", func() bool { _, err := os.Stat(stored); return err == nil })

	version(2, "m1.zones PTR one.test.", "m2.zones PTR two.test.")
	notify(t, s, "catalog.example.", "127.0.0.1")
	becomes(t, s, "a.two.test.", "192.0.2.2")

	p.set("one.test.", text(1, slow, "a A 192.0.2.77")) // the same serial, but another zone
	version(3, "other.zones PTR one.test.", "m2.zones PTR two.test.")
	notify(t, s, "catalog.example.", "127.0.0.1")
	step("Reset catalog member zone one.test. from catalog catalog.example.")
	becomes(t, s, "a.one.test.", "192.0.2.77")

	version(4, "other.zones PTR one.test.", "other.zones PTR two.test.") // broken
	notify(t, s, "catalog.example.", "127.0.0.1")
	step("catalog member other.zones.catalog.example. must have exactly one PTR record")
	if got := ask(t, s, "a.two.test."); got != "192.0.2.2" {
		t.Errorf("a broken catalog: %s", got)
	}

	eventually.Holds(t, "storing it anew", func() bool { _, err := os.Stat(stored); return err == nil })
	before := gone.Load()
	version(5, "m2.zones PTR two.test.")
	notify(t, s, "catalog.example.", "127.0.0.1")
	becomes(t, s, "a.one.test.", "NOTZONE")
	step("Removed catalog member zone one.test. from catalog catalog.example.")
	eventually.Holds(t, "forgetting", func() bool { _, err := os.Stat(stored); return os.IsNotExist(err) })
	eventually.Holds(t, "that to be durable", func() bool { return gone.Load() > before })
	if got := ask(t, s, "a.own.test."); got != "192.0.2.4" {
		t.Errorf("the Corefile's zone: %s", got)
	}
}
