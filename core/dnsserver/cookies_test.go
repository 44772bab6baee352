package dnsserver

import (
	"context"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// withCookies puts COOKIE options, in hexadecimal, into a query.
func withCookies(cookies ...string) func(*dns.Msg) {
	return func(m *dns.Msg) {
		if m.IsEdns0() == nil {
			m.SetEdns0(1232, false)
		}
		for _, c := range cookies {
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: c})
		}
	}
}

// cookiesIn are the COOKIE options of a reply.
func cookiesIn(m *dns.Msg) (all []string) {
	if m == nil || m.IsEdns0() == nil {
		return nil
	}
	for _, o := range m.IsEdns0().Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok {
			all = append(all, c.Cookie)
		}
	}
	return all
}

const clientCookie = "0123456789abcdef"

// Who shows a cookie gets one, in both lanes and over each transport, and keeps it; also with replies that the server
// writes.
func TestCookies(t *testing.T) {
	h := new(laneHandler)
	_, udp, tcp := running(t, block1(".", h), block1("panic.", h)) // which leaves the wire lane
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		for _, name := range []string{"www.", "unpack.", "fail.", "panic.", "block.", "park.", "parkunpack.", "long."} {
			first := cookiesIn(ask(t, network, addr, name, withCookies(clientCookie)))
			if len(first) != 1 || len(first[0]) != 48 || !strings.HasPrefix(first[0], clientCookie+"01000000") {
				t.Errorf("%s %s: got %v", network, name, first)
				continue
			}
			if again := cookiesIn(ask(t, network, addr, name, withCookies(first[0], "ffffffffffffffff"))); len(again) != 1 || again[0] != first[0] {
				t.Errorf("%s %s: got %v after %v", network, name, again, first)
			}
			forged := first[0][:47] + map[bool]string{true: "1", false: "0"}[first[0][47] == '0']
			if other := cookiesIn(ask(t, network, addr, name, withCookies(forged))); len(other) != 1 || other[0] == forged || !strings.HasPrefix(other[0], clientCookie) {
				t.Errorf("%s %s: got %v after the forged %v", network, name, other, forged)
			}
			if none := cookiesIn(ask(t, network, addr, name, withCookies())); len(none) != 0 {
				t.Errorf("%s %s: %v without being asked", network, name, none)
			}
		}
	}
}

// A COOKIE option of a length that it must not have is a format error (RFC 7873 §5.2.2), and gets none.
func TestCookieLengths(t *testing.T) {
	_, udp, tcp := running(t, block1(".", new(laneHandler)))
	for n := range 50 {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			r := ask(t, network, addr, "www.", withCookies(strings.Repeat("5a", n)))
			good := n == 8 || n >= 16 && n <= 40
			if (r.Rcode == dns.RcodeFormatError) == good || (len(cookiesIn(r)) == 1) != good || r.IsEdns0() == nil {
				t.Errorf("%s, %d octets: %v", network, n, r)
			}
		}
	}
	r := ask(t, "udp", udp, "www.", func(m *dns.Msg) {
		withCookies("00")(m)
		m.IsEdns0().SetVersion(1)
	})
	if r.Rcode != dns.RcodeBadVers {
		t.Errorf("of another version: %v", r)
	}
}

// The cookie has its place in a reply that is cut.
func TestCookieInTruncatedReply(t *testing.T) {
	_, udp, _ := running(t, block1(".", new(laneHandler)))
	for _, size := range []uint16{512, 1000} {
		var answers [2]int
		for i, c := range [][]string{nil, {clientCookie}} {
			r := ask(t, "udp", udp, "long.", func(m *dns.Msg) {
				m.SetEdns0(size, false)
				withCookies(c...)(m)
			})
			r.Compress = true
			b, err := r.Pack()
			if err != nil || !r.Truncated || len(b) > int(size) || len(cookiesIn(r)) != len(c) {
				t.Errorf("%d: %d octets, TC %v, cookies %v", size, len(b), r.Truncated, cookiesIn(r))
			}
			answers[i] = len(r.Answer)
		}
		if answers[1] >= answers[0] || answers[1] == 0 {
			t.Errorf("%d: %v records", size, answers)
		}
	}
}

func TestCookiesOff(t *testing.T) {
	cfg := block1(".", new(laneHandler))
	cfg.Cookies.Off = true
	_, udp, _ := running(t, cfg)
	for _, name := range []string{"www.", "unpack."} {
		for _, c := range []string{clientCookie, "00"} {
			if r := ask(t, "udp", udp, name, withCookies(c)); r.Rcode != dns.RcodeSuccess || len(cookiesIn(r)) != 0 {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// What the blocks of a listener say together.
func TestCookiesOf(t *testing.T) {
	a, b := cookie.NewRing(cookie.Keys{{1}}), cookie.NewRing(cookie.Keys{{2}})
	for i, tc := range []struct {
		blocks []Cookies
		want   *cookie.Ring
	}{
		{[]Cookies{{}, {}}, processCookies},
		{[]Cookies{{}, {Ring: a}}, a},
		{[]Cookies{{Ring: b}, {Ring: a}}, b},
		{[]Cookies{{Off: true}, {Ring: a}}, nil},
		{[]Cookies{{}, {Off: true}}, nil},
		{[]Cookies{{Off: true}, {Require: true}}, processCookies},
		{[]Cookies{{Off: true}, {Require: true, Ring: a}}, a},
	} {
		var group []*Config
		for _, c := range tc.blocks {
			group = append(group, &Config{Cookies: c})
		}
		if got := cookiesOf(group); got != tc.want {
			t.Errorf("%d: got %p, want %p", i, got, tc.want)
		}
	}
}

// Both lanes find out the same about a query.
func TestCookieOf(t *testing.T) {
	cfg := block1(".", new(laneHandler))
	cfg.Cookies.Ring = cookie.NewRing(cookie.Keys{{1}})
	s, err := NewServer("dns://:53", []*Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	client := netip.MustParseAddr("2001:db8::1")
	_, good := cfg.Cookies.Ring.Judge([]byte("12345678"), client, uint32(time.Now().Unix()))
	other := good
	other[20]++
	for option, want := range map[string]wire.CookieState{
		"": wire.CookieNone, string(good[:8]): wire.CookieClient, string(good[:]): wire.CookieValid, string(other[:]): wire.CookieInvalid,
	} {
		m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		m.SetEdns0(1232, false)
		if option != "" {
			withCookies(hex.EncodeToString([]byte(option)))(m)
		}
		if got := s.CookieOf(m, client); got != want {
			t.Errorf("%x: message is %s, want %s", option, got, want)
		}
		q := cookieQuery(t, m, client)
		if s.finish.Check(q); q.Cookie() != want {
			t.Errorf("%x: query is %s, want %s", option, q.Cookie(), want)
		}
	}
}

func cookieQuery(t testing.TB, m *dns.Msg, client netip.Addr) *wire.Query {
	q := new(wire.Query)
	if !q.Parse(packed(t, m)) {
		t.Fatal("not eligible")
	}
	q.Client = netip.AddrPortFrom(client, 1234)
	q.Arrival = time.Now()
	return q
}

// An option that a plugin put in does not stand beside the server's.
func TestCookieOfPluginGoes(t *testing.T) {
	h := handler{"odd", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = []dns.EDNS0{
			&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "ffffffffffffffff"},
			&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeOther},
		}
		if r.Question[0].Name == "rare." {
			m.Rcode = dns.RcodeBadCookie
		}
		return m.Rcode, w.WriteMsg(m)
	}}
	_, udp, _ := running(t, block1(".", h))
	for _, name := range []string{"www.", "rare."} {
		r := ask(t, "udp", udp, name, withCookies(clientCookie))
		if c := cookiesIn(r); len(c) != 1 || !strings.HasPrefix(c[0], clientCookie) || len(r.IsEdns0().Option) != 2 {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// servedWithCookies is how a query with a valid cookie, and one with a client cookie, are served in the wire lane.
func servedWithCookies(t testing.TB) map[string]func() {
	s, err := NewServer("dns://:53", []*Config{block1(".", new(laneHandler))})
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg).SetQuestion("www.", dns.TypeA)
	m.SetEdns0(1232, false)
	client := netip.MustParseAddr("192.0.2.1")
	loop := eventloop.New()
	t.Cleanup(loop.Close)
	all := map[string]func(){}
	prepare := func(name string) {
		q, w, room := cookieQuery(t, m, client), new(wire.Reply), make([]byte, 4096)
		q.SetLoop(loop)
		all[name] = func() {
			w.Reset(room)
			if b, _ := s.chain.ServeWire(w, q); b == nil {
				t.Fatal("no reply")
			}
		}
	}
	prepare("none")
	withCookies(clientCookie)(m)
	prepare("client")
	q := cookieQuery(t, m, client)
	s.finish.Check(q)
	_, c := s.finish.Cookies.Judge(q.EDNS().Options[4:], client, uint32(q.Arrival.Unix()))
	m.IsEdns0().Option = nil
	withCookies(hex.EncodeToString(c[:]))(m)
	prepare("valid")
	return all
}

func TestCookiesDoNotAllocate(t *testing.T) {
	for name, serve := range servedWithCookies(t) {
		if n := testing.AllocsPerRun(100, serve); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCookies(b *testing.B) {
	all := servedWithCookies(b)
	for _, name := range []string{"none", "client", "valid"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				all[name]()
			}
		})
	}
}
