package secondary

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"

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
	capture(t)
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
		until(t, "there is "+name, func() bool { return asked(t, i, name) == "NOERROR 1" })
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
	until(t, "what changed has come", func() bool { return asked(t, i, "www.a.example.") == "NXDOMAIN 0" })
	// Another primary has to be asked first.
	if i, err = i.Restart(corefile("", "127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	if got := asked(t, i, "www.a.example."); got != "SERVFAIL 0" {
		t.Errorf("of another primary: %s", got)
	}
	until(t, "no offers are left", func() bool {
		offers.Lock()
		defer offers.Unlock()
		return len(offers.all) == 0
	})
}
