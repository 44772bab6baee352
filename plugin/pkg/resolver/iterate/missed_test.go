package iterate

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// A Result tells which query had no reply that helps last, how it was asked, and how many there were; referrals help.
func TestMissed(t *testing.T) {
	rcode := func(rcode int) server {
		return func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, rcode) }
	}
	short := func(q *dns.Msg, tcp bool) *dns.Msg { // over TCP it is silent
		if tcp {
			return nil
		}
		m := new(dns.Msg).SetReply(q)
		m.Truncated = true
		return m
	}
	for what, tc := range map[string]struct {
		first, second server
		name, want    string
	}{
		"nothing":   {nil, nil, "loop.example.org.", "0"},
		"refused":   {rcode(dns.RcodeRefused), rcode(dns.RcodeRefused), "www.example.org.", "2 udp 10.0.2"},
		"silent":    {silence, silence, "www.example.org.", "6 udp 10.0.2"},
		"cut short": {short, short, "www.example.org.", "4 tcp 10.0.2"},
	} {
		w := small(t)
		w.conf.Minimise = Off
		if tc.first != nil {
			w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = tc.first, tc.second
		}
		res := w.resolve(tc.name, "A")
		got := fmt.Sprint(res.Missed.N)
		if m := res.Missed; m.N > 0 {
			got += fmt.Sprintf(" %s %.6s", map[bool]string{true: "tcp", false: "udp"}[m.TCP], m.Server.Addr)
		}
		if got != tc.want || res.Rcode != rcodeServFail || res.Queries == 0 {
			t.Errorf("%s: %s, want %s; %s", what, got, tc.want, res.text())
		}
	}
}

func silence(*dns.Msg, bool) *dns.Msg { return nil }

// The servers of a stub are asked wherever they are, unless the configuration says otherwise; those of which servers tell
// are not asked where servers cannot be, be it at the same address.
func TestStubAddresses(t *testing.T) {
	w := small(t)
	w.serve("127.0.0.9", "home.org. 60 IN SOA a. b. 1 2 3 4 5\nwww.home.org. 60 IN A 192.0.2.7", "away.org. 60 IN SOA a. b. 1 2 3 4 5\nwww.away.org. 60 IN A 192.0.2.7")
	w.serve("10.0.1.1", "org. 3600 IN SOA a. b. 1 2 3 4 5\naway.org. 3600 IN NS ns.away.org.\nns.away.org. 3600 IN A 127.0.0.9")
	for _, zone := range []string{"home.org.", "denied.org."} {
		d := &store.Delegation{Zone: rrset.MustName(zone), Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{addr("127.0.0.9")}, Port: 5300}}}
		w.conf.Stubs[d.Zone] = d
	}
	w.want("www.home.org.", "A", "NOERROR; www.home.org. A 192.0.2.7")
	w.want("www.away.org.", "A", "SERVFAIL; EDE 22")
	w.conf.DeniedStub = func(a netip.AddrPort) bool { return a == netip.MustParseAddrPort("127.0.0.9:5300") }
	w.want("www.denied.org.", "A", "SERVFAIL; EDE 22")
}

// The zone above a stub that has not heard of it denies its name when DS records are asked for. That holds for
// these, and neither for what the stub's servers have at its apex nor for the names below.
func TestStubDeniedAbove(t *testing.T) {
	w := small(t)
	w.conf.Cut = CutAlways
	w.serve("10.0.9.1", "home.org. 60 IN SOA a. b. 1 2 3 4 5\nhome.org. 60 IN A 192.0.2.7\nwww.home.org. 60 IN A 192.0.2.8")
	d := &store.Delegation{Zone: rrset.MustName("home.org."), Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{addr("10.0.9.1")}}}}
	w.conf.Stubs[d.Zone] = d
	for range 2 {
		w.want("home.org.", "DS", "NXDOMAIN")
	}
	if n := w.queries("home.org. DS"); n != 1 {
		t.Errorf("asked %d times for DS records", n)
	}
	w.want("home.org.", "A", "NOERROR; home.org. A 192.0.2.7")
	w.want("home.org.", "MX", "NOERROR")
	w.want("www.home.org.", "A", "NOERROR; www.home.org. A 192.0.2.8")
	w.want("home.org.", "DS", "NXDOMAIN")
}

// What the servers above a stub say of names in it is not believed, be it where an alias leads, or an alias that
// they answer with when DS records are asked for.
func TestStubToldAbove(t *testing.T) {
	w := small(t)
	w.serve("10.0.1.1", "org. 60 IN SOA a. b. 1 2 3 4 5\nto.org. 60 IN CNAME www.home.org.\nwww.home.org. 60 IN A 203.0.113.1\nhome.org. 60 IN CNAME to.org.")
	w.serve("10.0.9.1", "home.org. 60 IN SOA a. b. 1 2 3 4 5\nhome.org. 60 IN A 192.0.2.7\nwww.home.org. 60 IN A 192.0.2.8")
	d := &store.Delegation{Zone: rrset.MustName("home.org."), Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{addr("10.0.9.1")}}}}
	w.conf.Stubs[d.Zone] = d
	w.want("to.org.", "A", "NOERROR; to.org. CNAME www.home.org.; www.home.org. A 192.0.2.8")
	w.want("www.home.org.", "A", "NOERROR; www.home.org. A 192.0.2.8")
	w.resolve("home.org.", "DS")
	w.want("home.org.", "A", "NOERROR; home.org. A 192.0.2.7")
	w.want("home.org.", "MX", "NOERROR")
	w.now += 120 * store.Second
	w.serve("10.0.1.1", "org. 60 IN SOA a. b. 1 2 3 4 5\norg. 60 IN DNAME example.net.")
	w.want("org.", "DNAME", "NOERROR; org. DNAME example.net.")
	w.want("www.home.org.", "A", "NOERROR; www.home.org. A 192.0.2.8")
}

// A stub stands between a zone and the names at and below it, be there ever so many stubs elsewhere.
func TestStubbed(t *testing.T) {
	c := &Config{Stubs: map[string]*store.Delegation{}}
	for _, zone := range []string{"home.org.", "in.home.org.", "example.net."} {
		c.Stubs[rrset.MustName(zone)] = &store.Delegation{}
	}
	for _, q := range []struct {
		name, zone string
		want       bool
	}{
		{"www.home.org.", "org.", true}, {"home.org.", "org.", true}, {"home.org.", ".", true}, {"org.", ".", false}, {".", ".", false},
		{"www.home.org.", "home.org.", false}, {"a.b.in.home.org.", "home.org.", true}, {"in.home.org.", "in.home.org.", false},
		{"www.home.org.", "net.", false}, {"org.", "home.org.", false}, {"athome.org.", "org.", false},
	} {
		if got := c.stubbed(rrset.MustName(q.name), rrset.MustName(q.zone)); got != q.want {
			t.Errorf("%s in %s: %v", q.name, q.zone, got)
		}
	}
}

// A zone that is delegated to this server itself is not asked for here.
func TestOwnAddresses(t *testing.T) {
	w := small(t)
	w.conf.Own = func(a netip.AddrPort) bool { return a == netip.MustParseAddrPort("10.0.2.1:53") }
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.conf.Own = func(a netip.AddrPort) bool { return a.Addr() == addr("10.0.2.1") || a.Addr() == addr("10.0.2.2") }
	w.want("a.ent.example.org.", "A", "SERVFAIL; EDE 22")
	for _, a := range w.asked {
		if a.at == addr("10.0.2.1") {
			t.Errorf("asked itself for %s", a.q)
		}
	}
}

// A family that is left out is not asked by, nor looked for, until it is not any more. The address of a stub is asked all
// the same: it may be in a network of its own.
func TestFamilyLeftOut(t *testing.T) {
	w := newWorld(t)
	w.conf.IPv6 = true
	w.serve("10.0.0.1", rootZone+"six. 60 IN NS ns.six.\nns.six. 60 IN AAAA fd00::6\nmixed. 60 IN NS ns.glueless.net.\n")
	w.serve("fd00::6", "six. 60 IN SOA ns.six. x. 1 2 3 4 300\nwww.six. 60 IN A 192.0.2.6\n")
	w.serve("fd00::7", "stub. 60 IN SOA ns.stub. x. 1 2 3 4 300\nwww.stub. 60 IN A 192.0.2.7\n")
	stub := rrset.MustName("stub.")
	w.conf.Stubs[stub] = &store.Delegation{Zone: stub, Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{netip.MustParseAddr("fd00::7")}}}}
	w.conf.Shared.NoIPv6.Store(true)
	w.want("www.six.", "A", "SERVFAIL; EDE 22")
	w.want("www.stub.", "A", "NOERROR; www.stub. A 192.0.2.7")
	w.want("www.mixed.", "A", "SERVFAIL; EDE 22")
	if n := w.queries("ns.glueless.net. AAAA"); n > 0 {
		t.Errorf("%d queries for an address of the family", n)
	}
	w.conf.Shared.NoIPv6.Store(false)
	w.now += 60 * store.Second
	w.want("www.six.", "A", "NOERROR; www.six. A 192.0.2.6")
}
