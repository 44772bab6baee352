package loop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

// circle is a server with a gate and a Loop, that forwards to one of two upstreams: itself, and one that answers.
type circle struct {
	*prober
	loops  atomic.Bool // it forwards to itself
	self   string
	passed atomic.Int64
}

func newCircle(t *testing.T) *circle {
	c := new(circle)
	c.loops.Store(true)
	good := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) { w.WriteMsg(new(dns.Msg).SetReply(r)) })
	t.Cleanup(good.Close)
	l, _ := watched(".")
	g := &gate{l, l}
	started := make(chan struct{})
	l.Next = test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		<-started
		to := good.Addr
		if c.loops.Load() {
			to = c.self
		}
		c.passed.Add(1)
		m, err := dns.Exchange(r, to)
		if err != nil {
			return dns.RcodeServerFailure, err
		}
		return dns.RcodeSuccess, w.WriteMsg(m)
	})
	s := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) {
		<-started
		if rc, _ := g.ServeDNS(context.Background(), w, r); !plugin.ClientWrite(rc) {
			w.WriteMsg(new(dns.Msg).SetRcode(r, rc))
		}
	})
	t.Cleanup(s.Close)
	c.self = s.Addr
	var upstreams []*proxy.Proxy
	for _, addr := range []string{good.Addr, s.Addr} {
		u := proxy.NewProxy("loop", addr, transport.DNS)
		u.Start(time.Minute)
		t.Cleanup(u.Stop)
		upstreams = append(upstreams, u)
	}
	l.upstreams = func() []*proxy.Proxy {
		if c.loops.Load() {
			return upstreams
		}
		return upstreams[:1]
	}
	host, port, _ := net.SplitHostPort(s.Addr)
	c.prober = hasty(l, host, port)
	c.file = filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(c.file, []byte("# by hand\nsearch example.org\nnameserver 127.0.0.1\nnameserver 192.0.2.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	close(started)
	return c
}

// The last lines name the upstream that carries the loop, and where it is from.
func TestExitTellsUpstream(t *testing.T) {
	out := logtest.Capture(t)
	c := newCircle(t)
	var mu sync.Mutex
	var said string
	c.loop.fatal = func(format string, v ...any) {
		mu.Lock()
		defer mu.Unlock()
		said = fmt.Sprintf(format, v...)
	}
	c.start()
	defer c.stop()
	await(t, "the last words", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.HasPrefix(said, "Loop (127.0.0.1:") && strings.Contains(said, ` -> `+c.self+`) detected for zone ".", see https://coredns.io/plugins/loop#troubleshooting. Query: "HINFO `+c.loop.qname+`"`)
	})
	want := "The probe comes back by way of the upstream " + c.self + ` ("nameserver 127.0.0.1", line 3 of ` + c.file + ")\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("logged %s\nwant %s", out, want)
	}
}

// A loop that is broken does not end the process; queries from those who bring them back are refused until they do not any more.
func TestBreak(t *testing.T) {
	out := logtest.Capture(t)
	c := newCircle(t)
	c.loop.fatal = func(string, ...any) { t.Error("it ends the process") }
	c.breaks, c.look = true, 20*time.Millisecond
	c.start()
	defer c.stop()
	await(t, "breaking", func() bool { return strings.Contains(out.String(), "Queries from 127.0.0.1 are refused") })
	if want := `Loop (127.0.0.1:`; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "upstream "+c.self) {
		t.Errorf("logged %s", out)
	}

	before := c.passed.Load()
	r, err := dns.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), c.self)
	if err != nil || r.Rcode != dns.RcodeRefused || c.passed.Load() != before {
		t.Errorf("from the loop: %v, %v", r, err)
	}
	other := &dns.Client{Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}}}
	r, _, err = other.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), c.self)
	if err != nil || r.Rcode != dns.RcodeRefused || c.passed.Load() != before+1 {
		t.Errorf("from elsewhere, once round: %v, %v, passed %d times", r, err, c.passed.Load()-before)
	}

	time.Sleep(100 * time.Millisecond)
	if strings.Contains(out.String(), "is gone") {
		t.Error("gone too early")
	}
	c.loops.Store(false)
	await(t, "being over", func() bool {
		return strings.Contains(out.String(), `The loop for zone "." is gone, 2 queries were refused`) && c.loop.off.Load()
	})
	if r, err := dns.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), c.self); err != nil || r.Rcode != dns.RcodeSuccess {
		t.Errorf("then: %v, %v", r, err)
	}
}

// On bytes the gate does what it does with messages.
func TestGateOnWire(t *testing.T) {
	l := New(".")
	g := &gate{wireNext{}, l}
	l.broken.set([]carrier{{by: sighted{addr: netip.MustParseAddr("192.0.2.1")}}, {by: sighted{addr: netip.MustParseAddr("2001:db8::1")}}}, netip.Addr{})
	for client, tc := range map[string][2]wire.Outcome{"192.0.2.1": {wire.Done, wire.Unpack}, "2001:db8::1": {wire.Done, wire.Unpack}, "192.0.2.2": {wire.Done, wire.Done}} {
		for i, qtype := range []uint16{dns.TypeA, dns.TypeHINFO} {
			b, err := new(dns.Msg).SetQuestion("www.example.org.", qtype).Pack()
			var q wire.Query
			var w wire.Reply
			if err != nil || !q.Parse(b) {
				t.Fatal(err)
			}
			q.Client = netip.AddrPortFrom(netip.MustParseAddr(client), 53)
			refused := client != "192.0.2.2" && qtype == dns.TypeA
			if out := g.ServeWire(context.Background(), &w, &q); out != tc[i] || w.Failed() != refused || refused && w.Rcode() != dns.RcodeRefused {
				t.Errorf("%s, type %d: %s, rcode %d", client, qtype, out, w.Rcode())
			}
		}
	}
	if n := l.broken.refused.Load(); n != 2 {
		t.Errorf("%d refused", n)
	}
	if g.WireSelf() != plugin.Handler(g) {
		t.Error("not itself")
	}
}

func TestEntryOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("search a\n\n nameserver 192.0.2.1 # here\nnameserver\nnameserver x\nnameserver 2001:DB8::1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for upstream, want := range map[string]string{
		"192.0.2.1:53":       ` ("nameserver 192.0.2.1", line 3 of ` + file + ")",
		"[2001:db8::1]:5353": ` ("nameserver 2001:DB8::1", line 6 of ` + file + ")",
		"192.0.2.2:53":       "",
		"example.org:53":     "",
		"192.0.2.1":          "",
	} {
		if got := entryOf(upstream, file); got != want {
			t.Errorf("%s: %s", upstream, got)
		}
	}
	if got := entryOf("192.0.2.1:53", file+".none"); got != "" {
		t.Error(got)
	}
}
