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
