package test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// What a secondary may get as an increment outlives a reload of the Corefile, and so does what changed just then.
func TestIncrementsOutliveReloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db.example.org")
	write := func(serial int, hosts ...string) {
		text := fmt.Sprintf("@ 60 IN SOA ns host %d 60 60 60 60\n@ 60 IN NS ns\nns 60 IN A 192.0.2.1\n", serial)
		for i := range 50 {
			text += fmt.Sprintf("h%d 60 IN A 192.0.2.2\n", i)
		}
		for _, h := range hosts {
			text += h + " 60 IN A 192.0.2.3\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	corefile := func(comment, keys, view string) string {
		return fmt.Sprintf("# %s\n%s {\nbind 127.0.0.1\n%s\nfile %s {\nreload 50ms\n}\ntransfer {\nto *\n}\n}", comment, keys, view, path)
	}
	write(1)
	i, err := CoreDNSServer(corefile("0", "example.org:0", ""))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	// since asks for what changed since a serial, until the zone has another one, and returns it: the SOA record, then deltas or the whole zone.
	since := func(serial, now uint32) (all []dns.RR) {
		t.Helper()
		_, tcp := CoreDNSServerPorts(r.instance, 0)
		for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(20 * time.Millisecond) {
			q := new(dns.Msg).SetIxfr("example.org.", serial, "ns.example.org.", "host.example.org.")
			in, err := new(dns.Transfer).In(q, tcp)
			if err != nil {
				t.Fatal(err)
			}
			all = nil
			for e := range in {
				if e.Error != nil {
					t.Fatal(e.Error)
				}
				all = append(all, e.RR...)
			}
			if all[0].(*dns.SOA).Serial == now {
				return all
			}
		}
		t.Fatalf("the zone has still serial %d", all[0].(*dns.SOA).Serial)
		return nil
	}
	reload := func(text string) {
		t.Helper()
		next, err := r.instance.Restart(NewInput(text))
		if err != nil {
			t.Fatal(err)
		}
		r.instance = next
	}
	const whole = 54 // records of a transfer of all
	write(2, "two")
	if got := since(1, 2); len(got) != 5 { // SOA 2, SOA 1, SOA 2, one added, SOA 2
		t.Fatalf("before the reload: %v", got)
	}
	reload(corefile("1", "example.org:0", ""))
	if got := since(1, 2); len(got) != 5 {
		t.Errorf("after a reload: %d records", len(got))
	}
	if _, err := r.instance.Restart(NewInput(".:0 {\nno-such-plugin\n}")); err == nil {
		t.Fatal("a reload should fail")
	}
	write(3, "two", "three")
	reload(corefile("2", "example.org:0", "")) // the file is read with it
	if got := since(1, 3); len(got) != 6 {
		t.Errorf("what changed at the reload: %d records: %v", len(got), got)
	}
	if got := since(2, 3); len(got) != 5 {
		t.Errorf("what changed at the reload: %d records: %v", len(got), got)
	}
	write(4, "two", "three", "four")
	if got := since(1, 4); len(got) != 7 {
		t.Errorf("after the reload: %d records", len(got))
	}
	// Of several blocks with the same keys one may not get what is another one's.
	both := func(comment string) string {
		return corefile(comment, "example.org:0", "view a {\nexpr true\n}") + "\n" + corefile(comment, "example.org:0", "view b {\nexpr true\n}")
	}
	reload(both("3"))
	reload(both("4"))
	if got := since(1, 4); len(got) < whole {
		t.Errorf("from a block that may be another one: %d records", len(got))
	}
}
