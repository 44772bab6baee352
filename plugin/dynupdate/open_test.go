package dynupdate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"go.etcd.io/bbolt"
)

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
	foreign := database.New(other, v.Origin())
	anew, err := foreign.Write(v, nil)
	if err == nil {
		_, err = foreign.Take(anew)
	}
	if err != nil {
		t.Fatal(err)
	}
	foreign.Close()
	refused("database "+other, `belongs to zone "example.net."`)
	unlock, err := database.Lock(path, 0)
	if err != nil {
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
