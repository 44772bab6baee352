package dynupdate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

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
	defer d.Close()
	var lines []string
	w := c.Version.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			return "", 0, err
		}
		lines = append(lines, strings.Join(strings.Fields(rr.String()), " "))
	}
	return strings.Join(lines, "\n"), len(c.Deltas), nil
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
