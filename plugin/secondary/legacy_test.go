package secondary

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// asked is what a server says of a name's address.
func asked(t *testing.T, i *caddy.Instance, name string) string {
	t.Helper()
	m, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), i.Servers()[0].LocalAddr().String())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %d", dns.RcodeToString[m.Rcode], len(m.Answer))
}

// A reload keeps zones, also those of catalogs, whose primaries stay the same; even if these are away.
func TestReloadKeepsZones(t *testing.T) {
	logtest.Capture(t)
	quiet := dnsserver.Quiet
	dnsserver.Quiet = true
	t.Cleanup(func() { dnsserver.Quiet = quiet })
	p := newPrimary(t)
	p.set("a.example.", text(1, slow, "www A 192.0.2.1"))
	p.set("m.example.", text(1, slow, "www A 192.0.2.2"))
	p.set("catalog.example.", text(1, slow, `version TXT "2"`, "one.zones PTR m.example."))
	corefile := func(more, primary string) caddy.Input {
		return caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: []byte(".:0 {\nbind 127.0.0.1\ntransfer {\nto *\n}\n" +
			"secondary catalog.example {\ntransfer from " + primary + "\ncatalog\n}\nsecondary a.example" + more + " {\ntransfer from " + primary + "\n}\n}\n")}
	}
	i, err := caddy.Start(corefile("", p.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { i.ShutdownCallbacks(); i.Stop() }()
	for _, name := range []string{"www.a.example.", "www.m.example."} {
		eventually.Holds(t, "there is "+name, func() bool { return asked(t, i, name) == "NOERROR 1" })
	}
	p.down.Store(true)
	bad := caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: []byte(".:0 {\nbind 127.0.0.1\nnobody\n}\n")}
	if _, err := i.Restart(bad); err == nil {
		t.Fatal("an unknown directive is no error")
	}
	for n, in := range []caddy.Input{corefile("", p.addr), corefile(" b.example", p.addr)} {
		for range 2 { // the second one at once
			if i, err = i.Restart(in); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"www.a.example.", "www.m.example."} {
			if got := asked(t, i, name); got != "NOERROR 1" {
				t.Errorf("%s after reload %d: got %s", name, n, got)
			}
		}
	}
	p.set("a.example.", text(2, slow))
	p.down.Store(false)
	if i, err = i.Restart(corefile("", p.addr)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "what changed has come", func() bool { return asked(t, i, "www.a.example.") == "NXDOMAIN 0" })
	// So it is while another primary does not answer.
	if i, err = i.Restart(corefile("", "127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"www.a.example.": "NXDOMAIN 0", "www.m.example.": "NOERROR 1"} {
		if got := asked(t, i, name); got != want {
			t.Errorf("%s while another primary does not answer: %s", name, got)
		}
	}
	eventually.Holds(t, "no offers are left", func() bool {
		offers.Lock()
		defer offers.Unlock()
		return len(offers.all) == 0
	})
}

// heirOf is a secondary that takes the place of another one, which goes on until it is ended.
func heirOf(t *testing.T, s Secondary, input string) Secondary {
	t.Helper()
	s.roster.offer()
	t.Cleanup(func() { s.roster.withdraw(false) })
	return begin(t, input)
}

// TestHeir: while one configuration takes the place of another one, both serve the same, whoever of them is notified, and
// the old one stores nothing any more.
func TestHeir(t *testing.T) {
	logtest.Capture(t)
	p, dir := newPrimary(t), t.TempDir()
	p.set("example.org.", text(1, slow, "a A 192.0.2.1"))
	input := fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir)
	old := begin(t, input)
	becomes(t, old, "a.example.org.", "192.0.2.1")
	now := heirOf(t, old, input)
	if got := ask(t, now, "a.example.org."); got != "192.0.2.1" {
		t.Fatalf("at the begin: %s", got)
	}
	eventually.Holds(t, "the first look", func() bool { return now.roster.replica("example.org.").checked.Load() })
	for i, s := range []Secondary{old, now} {
		serial := i + 2
		p.set("example.org.", text(serial, slow, fmt.Sprintf("a A 192.0.2.%d", serial)))
		notify(t, s, "example.org.", "127.0.0.1")
		for _, s := range []Secondary{now, old} {
			becomes(t, s, "a.example.org.", fmt.Sprintf("192.0.2.%d", serial))
		}
	}
	// What it was fetching when it was inherited comes too late.
	z := old.roster.replica("example.org.")
	if err := z.serve(now.roster.replica("example.org.").zone.Current(), time.Now()); !errors.Is(err, errInherited) {
		t.Errorf("serving: %v", err)
	}
	path := filepath.Join(dir, "db.example.org")
	eventually.Holds(t, "storing", func() bool { b, _ := os.ReadFile(path); return strings.Contains(string(b), "192.0.2.3") })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if z.keep(true); readHead(path).known {
		t.Error("it stores what its heir has")
	}

	// The next configuration fails: all is as before.
	old.roster.withdraw(true)
	now.roster.stop()
	p.set("example.org.", text(4, slow, "a A 192.0.2.4"))
	notify(t, old, "example.org.", "127.0.0.1")
	becomes(t, old, "a.example.org.", "192.0.2.4")
	if got := ask(t, now, "a.example.org."); got != "192.0.2.3" {
		t.Errorf("the one that failed: %s", got)
	}
}

// TestRelated: what was fetched from one of the primaries is not fetched again when the others change.
func TestRelated(t *testing.T) {
	logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(2, slow, "a A 192.0.2.1"))
	old := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\n}", p.addr))
	becomes(t, old, "a.example.org.", "192.0.2.1")
	now := heirOf(t, old, fmt.Sprintf("secondary example.org {\ntransfer from 127.0.0.1:1 %s\nmax_records 50\n}", p.addr))
	eventually.Holds(t, "the first look", func() bool { return now.roster.replica("example.org.").checked.Load() })
	if got := p.transfers(); ask(t, now, "a.example.org.") != "192.0.2.1" || got != "AXFR" {
		t.Errorf("transfers: %s", got)
	}
	other := heirOf(t, now, fmt.Sprintf("secondary example.org {\ntransfer from %s\ntsig key.example.org\n}", p.addr))
	eventually.Holds(t, "a look with another key", func() bool { return other.roster.replica("example.org.").checked.Load() })
	if got := p.transfers(); got != "AXFR AXFR" {
		t.Errorf("with another key: %s", got)
	}
}

// TestViewsOfOneName: of two zones of one name none begins with what the other one had.
func TestViewsOfOneName(t *testing.T) {
	logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(2, slow, "a A 192.0.2.1"))
	old := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\n}", p.addr))
	becomes(t, old, "a.example.org.", "192.0.2.1")
	old.roster.offer()
	defer old.roster.withdraw(false)
	c := caddy.NewTestController("dns", "secondary example.org {\ntransfer from 127.0.0.1:1\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	crew := crewOf(c)
	one := crew.rosters[0].replica("example.org.")
	crew.rosters = append(crew.rosters, crew.rosters[0])
	if one.inherit(); one.zone.Current() != nil {
		t.Error("it is served")
	}
	crew.rosters = crew.rosters[:1]
	if one.inherit(); one.zone.Current() == nil || !one.borrowed.Load() {
		t.Error("the only one is not served, or not as it should be")
	}
}

// TestExpiredIsNotInherited: a zone that has expired meanwhile is not gone on with; the one before looks at its primary again.
func TestExpiredIsNotInherited(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(2, slow, "a A 192.0.2.1"))
	old := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\n}", p.addr))
	becomes(t, old, "a.example.org.", "192.0.2.1")
	elder := old.roster.replica("example.org.")
	old.roster.offer()
	defer old.roster.withdraw(false)
	elder.times.expires.Store(time.Now().Add(-time.Second).UnixNano())
	c := caddy.NewTestController("dns", fmt.Sprintf("secondary example.org {\ntransfer from %s\n}", p.addr))
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	heir := crewOf(c).rosters[0].replica("example.org.")
	if heir.inherit(); heir.zone.Current() != nil || elder.isInherited() {
		t.Errorf("served %t, inherited %t", heir.zone.Current() != nil, elder.isInherited())
	}
	if strings.Contains(out.String(), "of no use") {
		t.Error(out)
	}
}

// TestZoneAddedAtWithdrawal: a catalog may add a zone to a configuration while that ends. Neither waits for the other.
func TestZoneAddedAtWithdrawal(t *testing.T) {
	r := newRoster()
	z := newReplica("example.org.", new(source), nil)
	r.mu.Lock() // as who adds a zone
	withdrawn, taken := make(chan struct{}), make(chan struct{})
	go func() {
		r.withdraw(false)
		close(withdrawn)
	}()
	time.Sleep(50 * time.Millisecond) // it waits for the roster now
	go func() {
		z.inherit()
		close(taken)
	}()
	select {
	case <-taken:
	case <-time.After(10 * time.Second):
		t.Error("what is offered cannot be looked at")
	}
	r.mu.Unlock()
	<-withdrawn
}
