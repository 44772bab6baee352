package secondary

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	until(t, "storing", func() bool {
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
	until(t, "storing", func() bool {
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
