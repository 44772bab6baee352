package recurse

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// silent is a resolver whose only server, of example.org., never says anything.
func silent(t *testing.T, edit func(*settings)) *resolver {
	t.Helper()
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Cleanup(func() { p.Close() })
	at := netip.MustParseAddrPort(p.LocalAddr().String())
	zone := rrset.MustName("example.org.")
	s := defaults()
	s.allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{at.Addr()}, Port: at.Port()}}}
	s.minimise, s.perZone, s.perServer, s.recursions, s.timeout = iterate.Off, 0, 0, 65536, 1500*time.Millisecond
	edit(&s)
	r := s.resolver("test")
	r.start()
	t.Cleanup(r.stop)
	return r
}

func queryFrom(t *testing.T, client, name string) *wire.Query {
	t.Helper()
	b, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	q := new(wire.Query)
	if err != nil || !q.Parse(b) {
		t.Fatal(err)
	}
	q.Peer = wire.Peer{Client: netip.AddrPortFrom(netip.MustParseAddr(client), 5353)}
	return q
}

// Only so many queries of a client wait (DNSBomb), more if it is who it says; and the places come back.
func TestWaitingPerClient(t *testing.T) {
	refused := func(r *resolver, client string, n int, edit func(*wire.Query)) (no int) {
		for i := range n {
			q := queryFrom(t, client, fmt.Sprintf("n%d.%s.example.org.", i, strings.ReplaceAll(client, ":", "-")))
			edit(q)
			if j, limit := r.beginFor(q, nil, nil, unlooked); j == nil && limit == "client" {
				no++
			}
		}
		return no
	}
	plain := func(*wire.Query) {}
	patient := silent(t, func(s *settings) { s.timeout = time.Minute })
	for _, c := range []struct {
		client string
		n      int
		edit   func(*wire.Query)
		want   int
	}{
		{"192.0.2.1", waitingPerClient + 5, plain, 5},
		{"192.0.2.2", 5, plain, 0},
		{"2001:db8:0:aa00::1", waitingPerClient, plain, 0},
		{"2001:db8:0:aaff::2", 3, plain, 3}, // the same /56
		{"2001:db8:0:ab00::1", 3, plain, 0},
		{"192.0.2.1", 5, func(q *wire.Query) { q.SetCookie(wire.CookieValid, [wire.CookieLen]byte{}) }, 0},
		{"192.0.2.1", 5, func(q *wire.Query) { q.Peer.Proto = wire.TCP }, 0},
	} {
		if got := refused(patient, c.client, c.n, c.edit); got != c.want {
			t.Errorf("%s: %d of %d refused, want %d", c.client, got, c.n, c.want)
		}
	}
	r := silent(t, func(*settings) {})
	if got := refused(r, "192.0.2.1", 5, plain) + refused(r, "192.0.2.2", 5, plain); got != 0 {
		t.Errorf("%d of 10 refused", got)
	}
	left := -1
	for end := time.Now().Add(30 * time.Second); left != 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		r.clients.mu.Lock()
		left = len(r.clients.all)
		r.clients.mu.Unlock()
	}
	if left != 0 {
		t.Errorf("%d clients still have places", left)
	}
}

// The servers of one zone cannot keep all places: beyond a quarter of them its names fail at once.
func TestPlacesOfAZone(t *testing.T) {
	r := silent(t, func(s *settings) { s.recursions = 40 })
	told := 0
	for i := range 30 {
		j, _ := r.beginFor(queryFrom(t, "192.0.2.1", fmt.Sprintf("n%d.example.org.", i)), nil, nil, unlooked)
		if j == nil {
			t.Fatal("no place is left")
		}
		if time.Sleep(time.Millisecond); j.Over() && strings.Contains(j.result.Text, "too many queries for example.org.") {
			told++
		}
	}
	if told < 15 || told > 20 {
		t.Errorf("%d of 30 names failed at once, want 20", told)
	}
}
