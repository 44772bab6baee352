package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// What a secondary stores is what a configuration has that serves: one that cannot listen, and has other primaries, does not
// replace it.
func TestZoneStoredByWhoServes(t *testing.T) {
	dir := t.TempDir()
	primary := func(serial int) (addr string) {
		db := filepath.Join(dir, fmt.Sprint("primary", serial))
		if err := os.WriteFile(db, fmt.Appendf(nil, "@ 60 IN SOA ns h %d 7200 3600 86400 60\n@ 60 IN NS ns.example.com.\n", serial), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, addr = start(t, fmt.Sprintf("example.org:0 {\nbind 127.0.0.1\nfile %s\ntransfer {\nto *\n}\n}", db))
		return addr
	}
	corefile := func(addr string) string {
		return fmt.Sprintf("example.org:0 {\nbind 127.0.0.1\nsecondary {\ntransfer from %s\nstorage %s\n}\nslowstart\n}\n", addr, dir)
	}
	has := func(serial int) bool {
		text, _ := os.ReadFile(filepath.Join(dir, "db.example.org"))
		return strings.Contains(string(text), fmt.Sprintf(" %d 7200 ", serial))
	}
	taken := loopback.Taken(t)
	one, two := primary(1), primary(2)
	i, err := CoreDNSServer(corefile(one))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	eventually.Holds(t, "the zone of the first primary", func() bool { return has(1) })
	if _, err := i.Restart(NewInput(corefile(two) + ".:" + taken + " {\nbind 127.0.0.1\n}")); err == nil {
		t.Fatal("it listens on an address that is taken")
	}
	if !has(1) {
		t.Error("a reload that failed has stored what it had")
	}
	if r.instance, err = i.Restart(NewInput(corefile(two))); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the zone of the next primary", func() bool { return has(2) })
}
