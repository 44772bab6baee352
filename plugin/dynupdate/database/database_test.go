package database

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// versions is a zone, what changes it, and what it is then.
func versions(t testing.TB) (*zone.Zone, *zone.Delta, *zone.Zone) {
	t.Helper()
	origin, err := wire.LowerName("example.org.")
	if err != nil {
		t.Fatal(err)
	}
	b := zone.NewBuilder(origin, t.Logf)
	for _, text := range []string{"example.org. 60 SOA ns.example. h.example. 1 2 3 4 5", "example.org. 60 NS ns.example."} {
		rr, err := dns.NewRR(text)
		if err == nil {
			err = b.AddRR(rr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Build()
	if err == nil {
		v, err = v.Growing()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := v.Change()
	c.At(origin).Add(dns.TypeTXT, 60, []byte{1, 'x'})
	next, delta, err := c.Zone()
	if err != nil {
		t.Fatal(err)
	}
	return v, delta, next
}

// made is a database with a version, and some changes.
func made(t testing.TB, path string, v *zone.Zone, deltas ...*zone.Delta) *File {
	t.Helper()
	f := New(path, v.Origin())
	a, err := f.Write(v, nil)
	if err == nil {
		_, err = f.Take(a)
	}
	if err == nil && len(deltas) > 0 {
		_, err = f.Commit(deltas...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A database is what was written and committed, whoever opens it next; and while it is open nobody else does.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone.db")
	v, delta, next := versions(t)
	f := made(t, path, v, delta)
	if _, err := Lock(path, 0); !errors.Is(err, ErrInUse) {
		t.Errorf("locked twice: %v", err)
	}
	looked, c, err := Look(path, v.Origin(), 10)
	if err != nil || looked.IsOpen() || c.Version.Serial() != next.Serial() {
		t.Errorf("who only looks: %v, open %t", err, looked.IsOpen())
	}
	f.Close()
	unlock, err := Lock(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, c, err = Open(path, v.Origin(), 10, unlock)
	if err != nil || f.IsBroken() || c.Version.Serial() != next.Serial() || len(c.Deltas) != 1 {
		t.Fatalf("%v, broken %t, %d changes", err, f.IsBroken(), len(c.Deltas))
	}
	// What is committed while it is written anew is there afterwards.
	a, err := f.Write(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := f.Commit()
	if err == nil {
		err = a.Append([][]byte{endFrame(appendTransaction(beginFrame(nil, kindCommit), delta), 0), frame})
	}
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := f.Take(a); !taken || err != nil {
		t.Errorf("taken %t, %v", taken, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != f.Size() {
		t.Errorf("%d octets are said to be %d", info.Size(), f.Size())
	}
	f.Close()
	if _, c, err = Look(path, v.Origin(), 10); err != nil || c.Version.Serial() != next.Serial() {
		t.Errorf("written anew: %v", err)
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("%d files are in the folder", len(all))
	}
}

// A database is written anew when its changes are more than what they began with, and not for a few; nor again at once
// if that failed.
func TestHasGrown(t *testing.T) {
	v, delta, _ := versions(t)
	f := made(t, filepath.Join(t.TempDir(), "zone.db"), v)
	defer f.Close()
	many := make([]*zone.Delta, 2000)
	for i := range many {
		many[i] = delta
	}
	grow := func(until func() bool) {
		for !until() {
			if _, err := f.Commit(many...); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := f.Size()
	grow(f.HasGrown)
	if grown := f.Size() - began; grown < leastRewrite {
		t.Errorf("after %d octets", grown)
	}
	grow(func() bool { return f.Size() > 2*leastRewrite })
	f.Postpone()
	began = f.Size()
	if f.HasGrown() {
		t.Error("again at once")
	}
	grow(f.HasGrown)
	if grown := f.Size() - began; grown < began {
		t.Errorf("again after %d octets", grown)
	}
}

// A file that another process has beside the database does not take its place.
func TestTakeLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone.db")
	v, _, _ := versions(t)
	f := made(t, path, v)
	defer f.Close()
	was, _ := os.Stat(path)
	a, err := f.Write(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := Lock(Beside(path), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if taken, err := f.Take(a); taken || !errors.Is(err, ErrInUse) {
		t.Errorf("taken %t, %v", taken, err)
	}
	if is, _ := os.Stat(path); !os.SameFile(is, was) || !f.IsOpen() || f.IsBroken() {
		t.Error("the database is another one")
	}
}

// memory is a medium that is only read.
type memory struct{ *bytes.Reader }

var errBad = fmt.Errorf("bad")

// FuzzDatabase: whatever stands in a file, reading it ends, with an error or a zone.
func FuzzDatabase(f *testing.F) {
	v, delta, next := versions(f)
	path := filepath.Join(f.TempDir(), "zone.db")
	db := New(path, v.Origin())
	a, err := db.Write(next, []*zone.Delta{delta})
	if err == nil {
		_, err = db.Take(a)
	}
	if err != nil {
		f.Fatal(err)
	}
	size := db.Size()
	if _, err := db.Commit(delta); err != nil {
		f.Fatal(err)
	}
	db.Close()
	whole, _ := os.ReadFile(path)
	f.Add(whole)
	f.Add(whole[:size])
	f.Fuzz(func(t *testing.T, b []byte) {
		_, c, _, err := read("db", memory{bytes.NewReader(b)}, int64(len(b)), v.Origin(), 10)
		if err == nil && c.Version == nil {
			t.Error("neither a zone nor an error")
		}
	})
}

func (memory) WriteAt([]byte, int64) (int, error) { return 0, errBad }
func (memory) Truncate(int64) error               { return errBad }
func (memory) Sync() error                        { return nil }
func (memory) Close() error                       { return nil }
