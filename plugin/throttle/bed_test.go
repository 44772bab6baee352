package throttle

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

var errFailed = errors.New("failed")

// source replies by the first label: what kind of reply it is to be.
type source struct{ served *int }

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func message(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Response = true
	label, zone, _ := strings.Cut(name, ".")
	if zone == "" {
		zone = "."
	}
	soa := []dns.RR{test.SOA(zone + " 60 IN SOA a. b. 1 2 3 4 5")}
	switch {
	case strings.HasPrefix(label, "nx"):
		m.Rcode, m.Ns = dns.RcodeNameError, soa
	case strings.HasPrefix(label, "nodata"):
		m.Ns = soa
	case strings.HasPrefix(label, "referral"):
		m.Ns = []dns.RR{test.NS("sub." + zone + " 60 IN NS ns." + zone)}
	case strings.HasPrefix(label, "refused"):
		m.Rcode = dns.RcodeRefused
	case strings.HasPrefix(label, "fail"), strings.HasPrefix(label, "drop"):
		return nil
	case strings.HasPrefix(label, "empty"):
	default:
		m.Answer = []dns.RR{test.A(name + " 60 IN A 192.0.2.1")}
	}
	return m
}

func (s source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	*s.served++
	m := message(r.Question[0].Name, r.Question[0].Qtype)
	if m == nil && strings.HasPrefix(r.Question[0].Name, "drop") {
		return dns.RcodeSuccess, nil
	}
	if m == nil {
		return dns.RcodeServerFailure, errFailed
	}
	m.Id = r.Id
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	*s.served++
	m := message(wire.Text(q.Name()), q.Type())
	switch {
	case m == nil && strings.HasPrefix(wire.Text(q.Name()), "drop"):
		w.Drop()
	case m == nil:
		w.Fail(wire.ServFail, errFailed)
	default:
		if err := w.SetMsg(m); err != nil {
			panic(err)
		}
	}
	return wire.Done
}

// server is a Throttle and a clock of its own.
type server struct {
	*Throttle
	served int
	time   time.Time
	wire   bool   // queries come in the wire lane
	cookie string // what clients show, in hexadecimal; "" if nothing
}

// cookies is a server with a secret of cookies.
var cookies = sync.OnceValue(func() *dnsserver.Server {
	s, err := dnsserver.NewServer("dns://127.0.0.1:0", []*dnsserver.Config{{Zone: ".", Cookies: dnsserver.Cookies{Ring: ring}}})
	if err != nil {
		panic(err)
	}
	return s
})

var ring = cookie.NewRing(cookie.Keys{{1, 2, 3}})

// cookieFor is a good cookie for a client.
func cookieFor(client string) string {
	_, c := ring.Judge([]byte("12345678"), netip.MustParseAddr(client), uint32(time.Now().Unix()))
	return hex.EncodeToString(c[:])
}

func serving(t testing.TB, options string, wireLane bool) *server {
	t.Helper()
	c := caddy.NewTestController("dns", "throttle {\n"+options+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	s := &server{time: time.Unix(1_700_000_000, 0), wire: wireLane}
	s.Throttle = dnsserver.GetConfig(c).Plugin[0](source{&s.served}).(*Throttle)
	s.now = func() time.Time { return s.time }
	return s
}

// ask is what a client gets, in one word.
func (s *server) ask(t testing.TB, client, network, name string) string {
	t.Helper()
	r := new(dns.Msg).SetQuestion(name, dns.TypeA)
	if s.cookie != "" {
		r.SetEdns0(1232, false)
		r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: s.cookie}}
	}
	ctx := context.WithValue(t.Context(), dnsserver.Key{}, cookies())
	addr := netip.MustParseAddrPort(netip.AddrPortFrom(netip.MustParseAddr(client), 4711).String())
	var m *dns.Msg
	if s.wire {
		packet, err := r.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q wire.Query
		var w wire.Reply
		if !q.Parse(packet) {
			t.Fatal("not eligible")
		}
		q.Client, q.Arrival = addr, s.time
		if network == "tcp" {
			q.Proto, q.Peer.Limit = wire.TCP, wire.MaxMessage
		}
		if option, ok := q.EDNS().Option(wire.OptionCookie); ok {
			q.SetCookie(ring.Judge(option, addr.Addr(), uint32(time.Now().Unix())))
		}
		w.Reset(nil)
		if out := s.ServeWire(ctx, &w, &q); out != wire.Done {
			t.Fatalf("%s: %v", name, out)
		}
		switch {
		case w.Failed():
			m = new(dns.Msg).SetRcode(r, w.Rcode())
		case w.Holds():
			if m, err = w.Msg(r); err != nil {
				t.Fatal(err)
			}
		}
	} else {
		w := &peer{remote: net.UDPAddrFromAddrPort(addr)}
		if network == "tcp" {
			w.remote = net.TCPAddrFromAddrPort(addr)
		}
		rec := dnstest.NewRecorder(w)
		rc, _ := s.ServeDNS(ctx, rec, r)
		if m = rec.Msg; !plugin.ClientWrite(rc) {
			m = new(dns.Msg).SetRcode(r, rc)
		}
	}
	switch {
	case m == nil:
		return "nothing"
	case m.Truncated:
		if len(m.Answer)+len(m.Ns) > 0 || m.Rcode != 0 || m.Question[0].Name != name {
			t.Errorf("%s: got %v", name, m)
		}
		return "tc"
	}
	return dns.RcodeToString[m.Rcode]
}

type peer struct {
	test.ResponseWriter
	remote net.Addr
}

func (c *peer) RemoteAddr() net.Addr { return c.remote }

// times asks n times and counts what comes.
func (s *server) times(t testing.TB, n int, client, network string, name func(i int) string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for i := range n {
		got[s.ask(t, client, network, name(i))]++
	}
	return got
}

func same(name string) func(int) string { return func(int) string { return name } }

func each(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}
