package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// Zones are signed for a configuration that serves. One that cannot listen, or is set up for one question, leaves the signed
// files as they are: who serves them would have signatures of keys that the zone above has not been told of.
func TestSignedByWhoServes(t *testing.T) {
	dir := t.TempDir()
	db, signed := filepath.Join(dir, "db"), filepath.Join(dir, "db.example.org.signed")
	if err := os.WriteFile(db, []byte("@ 60 IN SOA ns h 7 2 3 4 5\n@ 60 IN NS ns.example.com.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := loopback.Taken(t)
	corefile := func(key string) string {
		return fmt.Sprintf("example.org:0 {\nbind 127.0.0.1\nsign %s {\nkey file %s\ndirectory %s\n}\nslowstart\n}\n", db, key, dir)
	}
	has := func(tag uint16) bool {
		text, _ := os.ReadFile(signed)
		return strings.Contains(string(text), fmt.Sprintf(" %d example.org. ", tag))
	}
	key, base := writeZoneKey(t, dir)
	i, err := CoreDNSServer(corefile(base))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	eventually.Holds(t, "the first key's signatures", func() bool { return has(key.KeyTag()) })

	next, base := writeZoneKey(t, dir)
	if _, err := i.Restart(NewInput(corefile(base) + ".:" + taken + " {\nbind 127.0.0.1\n}")); err == nil {
		t.Fatal("it listens on an address that is taken")
	}
	if !has(key.KeyTag()) || has(next.KeyTag()) {
		t.Error("a reload that failed has the zone signed by other keys")
	}
	_, end, err := dnsserver.Once(NewInput(corefile(base)))
	if err != nil {
		t.Fatal(err)
	}
	end()
	if !has(key.KeyTag()) || has(next.KeyTag()) {
		t.Error("one question has the zone signed by other keys")
	}
	if r.instance, err = i.Restart(NewInput(corefile(base))); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the next key's signatures", func() bool { return !has(key.KeyTag()) && has(next.KeyTag()) })
}
