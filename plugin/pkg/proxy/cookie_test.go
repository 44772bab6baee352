package proxy

import (
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// cookieOf is the cookie of a packed message in hexadecimal, "none" without one.
func cookieOf(t testing.TB, b []byte) string {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Error(err)
		return "none"
	}
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if c, ok := o.(*dns.EDNS0_COOKIE); ok {
				return c.Cookie
			}
		}
	}
	return "none"
}

// withCookie is the reply to q with a cookie, or without one if it is "".
func withCookie(t testing.TB, q []byte, rcode int, cookie string) []byte {
	t.Helper()
	r := new(dns.Msg)
	if err := r.Unpack(q); err != nil {
		t.Error(err)
		return nil
	}
	m := new(dns.Msg).SetRcode(r, rcode)
	m.SetEdns0(1232, false)
	if cookie != "" {
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie}}
	}
	b, err := m.Pack()
	if err != nil {
		t.Error(err)
	}
	return b
}

// askWithCookie asks once and returns the reply.
func askWithCookie(t testing.TB, p *Proxy, timeout time.Duration) ([]byte, replies.Facts, error) {
	t.Helper()
	query := packed.Message(t, "www.example.org.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false) })
	plain := string(query[2:])
	var reply []byte
	done := make(chan struct{})
	x := &Exchange{Query: query, Cookie: true, Timeout: timeout}
	x.Owner = enderFunc(func(x *Exchange) {
		reply = append(reply, x.Reply...)
		close(done)
	})
	p.Begin(x)
	<-done
	if string(x.Query[2:]) != plain {
		t.Errorf("the owner's query was changed to %x", x.Query)
	}
	return reply, x.Facts, x.Err
}

const serverCookie = "1111111122222222"

func TestCookieIsKeptForEachUpstream(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{}
	upstream := func(name string) *Proxy {
		return proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
			c := cookieOf(t, q)
			mu.Lock()
			seen[name] = append(seen[name], c)
			mu.Unlock()
			if c != "none" {
				c = c[:16] + serverCookie
			}
			send(withCookie(t, q, 0, strings.TrimPrefix(c, "none")))
		}), transport.DNS)
	}
	a, b := upstream("a"), upstream("b")
	for range 2 {
		for _, p := range []*Proxy{a, b} {
			if _, _, err := askWithCookie(t, p, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m, err := ask(a, "www.example.org.", Options{}); err != nil || m.IsEdns0() == nil { // without the owner's wish
		t.Error(m, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for name, p := range map[string]*Proxy{"a": a, "b": b} {
		client := hex.EncodeToString(p.cookies.client[:])
		want := []string{client, client + serverCookie}
		if name == "a" {
			want = append(want, "none")
		}
		if !slices.Equal(seen[name], want) {
			t.Errorf("%s saw %v, want %v", name, seen[name], want)
		}
	}
	if seen["a"][0] == seen["b"][0] {
		t.Error("two upstreams see the same cookie")
	}
}

func TestStrangersCookieIsIgnored(t *testing.T) {
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		c := cookieOf(t, q)
		send(withCookie(t, q, dns.RcodeNameError, "0011223344556677"+serverCookie)) // somebody else
		send(withCookie(t, q, dns.RcodeNameError, c[:8]))                           // too short
		send(withCookie(t, q, dns.RcodeNameError, c[:16]+"aabb"))                   // no server cookie is that short
		send(withCookie(t, q, 0, c[:16]+serverCookie))
	})
	p := proxyTo(t, addr, transport.DNS)
	_, facts, err := askWithCookie(t, p, 0)
	if err != nil || facts.Rcode != 0 {
		t.Errorf("%+v %v", facts, err)
	}
	if n := testutil.ToFloat64(repliesIgnored.WithLabelValues("test", addr, "cookie")); n != 3 {
		t.Errorf("%v are counted", n)
	}
	if c := p.cookies.server.Load(); c == nil || hex.EncodeToString(*c) != serverCookie {
		t.Error("the true one was not kept")
	}
}

// An upstream that gave a cookie is expected to go on doing so, but not for ever.
func TestCookieIsExpected(t *testing.T) {
	with := true
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		if with {
			send(withCookie(t, q, 0, cookieOf(t, q)[:16]+serverCookie))
		} else {
			send(withCookie(t, q, 0, ""))
		}
		with = false
	})
	p := proxyTo(t, addr, transport.DNS)
	for i, late := range []bool{false, true, false} {
		_, _, err := askWithCookie(t, p, 50*time.Millisecond)
		var op net.Error
		if isLate := errors.As(err, &op) && op.Timeout(); isLate != late || !late && err != nil {
			t.Errorf("query %d: %v", i, err)
		}
	}
}

func TestBadCookie(t *testing.T) {
	for name, stubborn := range map[string]bool{"helped by a new one": false, "stubborn": true} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			answer := func(network string, q []byte) []byte {
				mu.Lock()
				defer mu.Unlock()
				c := cookieOf(t, q)
				seen = append(seen, network+strings.TrimPrefix(c, c[:16]))
				rcode := dns.RcodeBadCookie
				if !stubborn && len(c) > 16 {
					rcode = 0
				}
				return withCookie(t, q, rcode, c[:16]+serverCookie)
			}
			conn, l, err := loopback.Listen()
			if err != nil {
				t.Fatal(err)
			}
			addr := serveDatagrams(t, conn.(*net.UDPConn), func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(answer("udp ", q)) })
			serveConns(t, l, func(conn net.Conn) {
				for {
					q, err := readFrame(conn)
					if err != nil {
						return
					}
					conn.Write(frame(answer("tcp ", q)))
				}
			})
			_, facts, err := askWithCookie(t, proxyTo(t, addr, transport.DNS), 0)
			mu.Lock()
			defer mu.Unlock()
			want := []string{"udp ", "udp " + serverCookie}
			if stubborn {
				want = append(want, "tcp "+serverCookie)
			}
			if !slices.Equal(seen, want) {
				t.Errorf("the upstream saw %q, want %q", seen, want)
			}
			if stubborn != errors.Is(err, ErrBadCookie) || !stubborn && (err != nil || facts.Rcode != 0) {
				t.Errorf("%+v %v", facts, err)
			}
		})
	}
}

// An upstream that gives cookies over UDP alone is heard over TCP all the same.
func TestCookieOverUDPOnly(t *testing.T) {
	conn, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	addr := serveDatagrams(t, conn.(*net.UDPConn), func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		send(withCookie(t, q, 0, cookieOf(t, q)[:16]+serverCookie))
	})
	serveConns(t, l, func(conn net.Conn) {
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			conn.Write(frame(withCookie(t, q, dns.RcodeNameError, "")))
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	for i, stream := range []bool{false, true, false} {
		c := &call{done: make(chan struct{}, 1)}
		query := packed.Message(t, "www.example.org.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false) })
		c.x = Exchange{Query: query, Cookie: true, Stream: stream, Owner: c}
		p.Begin(&c.x)
		if <-c.done; c.x.Err != nil || (c.x.Facts.Rcode == dns.RcodeNameError) != stream {
			t.Errorf("%d: %v, rcode %d over %s", i, c.x.Err, c.x.Facts.Rcode, c.x.Proto)
		}
	}
}

// A server that takes no cookie of its own, asked over UDP by another Proxy than the one that made the Peer, is asked over
// TCP by the latter: the connections are its engine's, and no engine keeps an exchange that is over.
func TestBadCookieAtAnotherProxy(t *testing.T) {
	conn, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	bad := func(q []byte) []byte { return withCookie(t, q, dns.RcodeBadCookie, cookieOf(t, q)[:16]+serverCookie) }
	addr := serveDatagrams(t, conn.(*net.UDPConn), func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(bad(q)) })
	serveConns(t, l, func(c net.Conn) {
		for {
			q, err := readFrame(c)
			if err != nil {
				return
			}
			if _, err = c.Write(frame(bad(q))); err != nil {
				return
			}
		}
	})
	maker, other := NewOpen("test"), NewOpen("test")
	defer maker.Stop()
	defer other.Stop()
	to := maker.NewPeer(netip.MustParseAddrPort(addr))
	for i, p := range []*Proxy{maker, other, other, maker} {
		c := &call{done: make(chan struct{}, 1)}
		query := packed.Message(t, "www.example.org.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false) })
		c.x = Exchange{Query: query, To: to, Cookie: true, MixCase: true, Timeout: 10 * time.Second, Owner: c}
		p.Begin(&c.x)
		if <-c.done; !errors.Is(c.x.Err, ErrBadCookie) || c.x.Proto != "tcp" {
			t.Errorf("%d: %v over %s", i, c.x.Err, c.x.Proto)
		}
		for _, p := range []*Proxy{maker, other} {
			p.engine.mu.Lock()
			if n := p.engine.wheel.n; n != 0 {
				t.Errorf("%d: %d exchanges wait in an engine", i, n)
			}
			p.engine.mu.Unlock()
		}
	}
}
