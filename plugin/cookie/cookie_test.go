package cookie

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

const (
	secretA = "e5e973e5a6b2a43f48e7dc849e37bfcf"
	secretB = "445536bcd2513298075a5d379663c962"

	clientCookie = "2464c4abcf10c957"
)

// answers is a plugin that answers in both lanes.
type answers struct{}

func (answers) Name() string               { return "answers" }
func (a answers) WireSelf() plugin.Handler { return a }

func (answers) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	return 0, w.WriteMsg(m)
}

func (answers) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	w.SetFlag(wire.FlagAA, true)
	return wire.Done
}

// serving is a server with the directive's options, on loopback.
func serving(t *testing.T, options string) map[string]string {
	t.Helper()
	c := caddy.NewTestController("dns", "cookie {\n"+options+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	cfg := dnsserver.GetConfig(c)
	cfg.Zone, cfg.ListenHosts, cfg.Transport, cfg.Port = ".", []string{"127.0.0.1"}, "dns", "0"
	cfg.AddPlugin(func(plugin.Handler) plugin.Handler { return answers{} })
	s, err := dnsserver.NewServer("dns://127.0.0.1:0", []*dnsserver.Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) })
	wg.Go(func() { s.ServePacket(p) })
	t.Cleanup(func() { s.Stop(); wg.Wait() })
	return map[string]string{"udp": p.LocalAddr().String(), "tcp": l.Addr().String()}
}

// ask is what a client with a cookie gets, in short, and the cookie with it.
func ask(t *testing.T, network, addr, cookie string, change ...func(*dns.Msg)) (reply, next string) {
	t.Helper()
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	if cookie != "none" {
		m.SetEdns0(1232, false)
	}
	if cookie != "" && cookie != "none" {
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie}}
	}
	for _, f := range change {
		f(m)
	}
	c := &dns.Client{Net: network, Timeout: 3 * time.Second}
	r, _, err := c.Exchange(m, addr)
	if err != nil {
		t.Fatal(err)
	}
	reply = dns.RcodeToString[r.Rcode]
	if r.Truncated {
		reply += " tc"
	}
	if r.Authoritative {
		reply += " answered"
	}
	if opt := r.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if o, ok := o.(*dns.EDNS0_COOKIE); ok {
				next += o.Cookie
			}
		}
	}
	return reply, next
}

// bothLanes runs f with the wire lane and without.
func bothLanes(t *testing.T, f func(t *testing.T)) {
	old := dnsserver.WireLane
	defer func() { dnsserver.WireLane = old }()
	for _, on := range []bool{true, false} {
		dnsserver.WireLane = on
		t.Run(fmt.Sprintf("wire=%v", on), f)
	}
}

func TestRequire(t *testing.T) {
	bothLanes(t, func(t *testing.T) {
		for options, want := range map[string][4]string{ // no OPT record, no cookie, client cookie, bad server cookie
			"":        {"NOERROR answered", "NOERROR answered", "NOERROR answered", "NOERROR answered"},
			"require": {"NOERROR tc", "NOERROR tc", "BADCOOKIE", "BADCOOKIE"},
		} {
			addrs := serving(t, options)
			for i, cookie := range []string{"none", "", clientCookie, clientCookie + "010000005cf79f111f8130c3eee29480"} {
				reply, next := ask(t, "udp", addrs["udp"], cookie)
				if reply != want[i] || (len(next) == 48) != (i >= 2) {
					t.Errorf("%q, cookie %q: got %s, %s", options, cookie, reply, next)
				}
				if i >= 2 {
					if reply, again := ask(t, "udp", addrs["udp"], next); reply != "NOERROR answered" || again != next {
						t.Errorf("%q, then: got %s, %s", options, reply, again)
					}
				}
				if reply, _ := ask(t, "tcp", addrs["tcp"], cookie); reply != "NOERROR answered" {
					t.Errorf("%q, cookie %q over TCP: got %s", options, cookie, reply)
				}
			}
			notify := func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }
			if reply, _ := ask(t, "udp", addrs["udp"], "", notify); reply != "NOERROR answered" {
				t.Errorf("%q, NOTIFY: got %s", options, reply)
			}
		}
	})
}

func TestOff(t *testing.T) {
	bothLanes(t, func(t *testing.T) {
		addrs := serving(t, "off")
		for _, cookie := range []string{clientCookie, "00"} {
			if reply, next := ask(t, "udp", addrs["udp"], cookie); reply != "NOERROR answered" || next != "" {
				t.Errorf("%s: got %s, %s", cookie, reply, next)
			}
		}
	})
}

// Servers that share secrets take each other's cookies, also while secrets roll over (RFC 9018 §5).
func TestReplicas(t *testing.T) {
	a, b, rolled := serving(t, "require\nsecret "+secretA), serving(t, "require\nsecret "+secretA+" "+secretB), serving(t, "require\nsecret "+secretB+" "+secretA)
	_, first := ask(t, "udp", a["udp"], clientCookie)
	if reply, same := ask(t, "udp", b["udp"], first); reply != "NOERROR answered" || same != first {
		t.Errorf("at the second: %s, %s", reply, same)
	}
	reply, next := ask(t, "udp", rolled["udp"], first)
	if reply != "NOERROR answered" || next == first {
		t.Errorf("where the other secret signs: %s, %s", reply, next)
	}
	if reply, _ := ask(t, "udp", b["udp"], next); reply != "NOERROR answered" {
		t.Errorf("back at the second: %s", reply)
	}
	if reply, _ := ask(t, "udp", a["udp"], next); reply != "BADCOOKIE" {
		t.Errorf("where the new secret is not known: %s", reply)
	}
}

func TestMetrics(t *testing.T) {
	bothLanes(t, func(t *testing.T) {
		addrs := serving(t, "require")
		const server = "dns://127.0.0.1:0"
		before := map[string]float64{}
		read := func() map[string]float64 {
			m := map[string]float64{}
			for _, result := range []string{"none", "client", "invalid", "valid"} {
				m[result] = testutil.ToFloat64(queries.WithLabelValues(server, result))
			}
			for _, reply := range []string{"badcookie", "truncated"} {
				m[reply] = testutil.ToFloat64(refused.WithLabelValues(server, reply))
			}
			for k := range m {
				m[k] -= before[k]
			}
			return m
		}
		before = read()
		ask(t, "udp", addrs["udp"], "none")
		ask(t, "udp", addrs["udp"], "")
		_, good := ask(t, "udp", addrs["udp"], clientCookie)
		ask(t, "tcp", addrs["tcp"], clientCookie)
		ask(t, "udp", addrs["udp"], strings.Repeat("5a", 24))
		for range 3 {
			ask(t, "udp", addrs["udp"], good)
		}
		if got := fmt.Sprint(read()); got != "map[badcookie:2 client:2 invalid:1 none:2 truncated:2 valid:3]" {
			t.Error(got)
		}
	})
}
