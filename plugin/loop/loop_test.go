package loop

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// watched is a Loop that keeps its last words to itself.
func watched(zone string) (*Loop, func() string) {
	l := New(zone)
	var mu sync.Mutex
	var said string
	l.fatal = func(format string, v ...any) {
		mu.Lock()
		said = fmt.Sprintf(format, v...)
		mu.Unlock()
	}
	l.Next = test.NextHandler(dns.RcodeSuccess, nil)
	return l, func() string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
}

func see(l *Loop, name string, qtype uint16) {
	l.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion(name, qtype))
}

func TestProbeName(t *testing.T) {
	for zone, want := range map[string]string{
		".":            `^[0-9]{10,19}\.[0-9]{10,19}\.$`,
		"Example.ORG":  `^[0-9]{10,19}\.[0-9]{10,19}\.example\.org\.$`,
		"example.org.": `^[0-9]{10,19}\.[0-9]{10,19}\.example\.org\.$`,
	} {
		a, b := New(zone).qname, New(zone).qname
		if !regexp.MustCompile(want).MatchString(a) || a == b {
			t.Errorf("%s: %s and %s", zone, a, b)
		}
	}
}

func TestThirdTimeIsFatal(t *testing.T) {
	l, said := watched("example.org.")
	l.addr = ":53"
	for range 2 {
		see(l, l.qname, dns.TypeHINFO)
	}
	see(l, l.qname, dns.TypeA)
	see(l, "1.2.example.org.", dns.TypeHINFO)
	if s := said(); s != "" {
		t.Fatalf("twice: %s", s)
	}
	see(l, strings.ToUpper(l.qname), dns.TypeHINFO)
	want := `Loop (10.240.0.1:40212 -> :53) detected for zone "example.org.", see https://coredns.io/plugins/loop#troubleshooting. Query: "HINFO ` + l.qname + `"`
	if s := said(); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestOff(t *testing.T) {
	l, said := watched(".")
	l.off.Store(true)
	for range 5 {
		see(l, l.qname, dns.TypeHINFO)
	}
	if s := said(); s != "" {
		t.Error(s)
	}
}

type wireNext struct{ plugin.Handler }

func (wireNext) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome { return wire.Done }
func (n wireNext) WireSelf() plugin.Handler                                       { return n }

// On bytes only what may be the probe is led to the message lane.
func TestServeWire(t *testing.T) {
	l, _ := watched(".")
	l.Next = wireNext{}
	for _, tc := range []struct {
		qtype uint16
		off   bool
		want  wire.Outcome
	}{{dns.TypeHINFO, false, wire.Unpack}, {dns.TypeHINFO, true, wire.Done}, {dns.TypeA, false, wire.Done}} {
		b, err := new(dns.Msg).SetQuestion("www.example.org.", tc.qtype).Pack()
		var q wire.Query
		if err != nil || !q.Parse(b) {
			t.Fatal(err)
		}
		l.off.Store(tc.off)
		if got := l.ServeWire(context.Background(), new(wire.Reply), &q); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
	if l.WireSelf() != plugin.Handler(l) {
		t.Error("not itself")
	}
}

// server is a DNS server whose chain is l and, as its forward, f.
func server(t *testing.T, l *Loop, f func(ask func() string, w dns.ResponseWriter, r *dns.Msg)) (host, port string) {
	t.Helper()
	var addr string
	ready := make(chan bool)
	l.Next = test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		f(func() string { <-ready; return addr }, w, r)
		return dns.RcodeSuccess, nil
	})
	s := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) {
		started.RLock() // the race detector does not know that the probe comes after its prober
		defer started.RUnlock()
		l.ServeDNS(context.Background(), w, r)
	})
	t.Cleanup(s.Close)
	addr = s.Addr
	close(ready)
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}

var started sync.RWMutex

func hasty(l *Loop, host, port string) *prober {
	started.Lock()
	defer started.Unlock()
	p := newProber(l, host, port)
	p.again, p.notYet, p.linger = 20*time.Millisecond, 5*time.Millisecond, 50*time.Millisecond
	return p
}

func TestProberFindsLoop(t *testing.T) {
	l, said := watched(".")
	var passes atomic.Int64
	host, port := server(t, l, func(addr func() string, w dns.ResponseWriter, r *dns.Msg) {
		if passes.Add(1) > 10 { // it was said long ago; the process would be gone
			return
		}
		if m, err := dns.Exchange(r, addr()); err == nil {
			w.WriteMsg(m)
		}
	})
	p := hasty(l, host, port)
	p.start()
	defer p.stop()
	for end := time.Now().Add(3 * time.Second); said() == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not found")
		}
	}
	if s := said(); !strings.Contains(s, " -> "+net.JoinHostPort(host, port)+")") {
		t.Error(s)
	}
}

// Without a loop the Loop is off soon after the answer, and not before.
func TestProberRests(t *testing.T) {
	l, said := watched(".")
	answers := make(chan bool, 1)
	host, port := server(t, l, func(_ func() string, w dns.ResponseWriter, r *dns.Msg) {
		w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
		answers <- true
	})
	p := hasty(l, host, port)
	p.linger = 200 * time.Millisecond
	p.start()
	defer p.stop()
	<-answers
	time.Sleep(50 * time.Millisecond)
	if l.off.Load() {
		t.Error("off at once")
	}
	p.running.Wait()
	if !l.off.Load() || said() != "" {
		t.Errorf("off: %v, said %q", l.off.Load(), said())
	}
}

// The probe is sent again until somebody listens, and sightings of failed tries do not count.
func TestProberTriesAgain(t *testing.T) {
	l, said := watched(".")
	addr := loopback.Addr()
	host, port, _ := net.SplitHostPort(addr)
	l.seen = 2
	p := hasty(l, host, port)
	p.start()
	defer p.stop()
	time.Sleep(30 * time.Millisecond)
	if l.off.Load() {
		t.Fatal("gave up at once")
	}
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		l.ServeDNS(context.Background(), w, r)
		w.WriteMsg(new(dns.Msg).SetReply(r))
	})}
	go s.ActivateAndServe()
	defer s.Shutdown()
	p.running.Wait()
	if !l.off.Load() || said() != "" {
		t.Error(said())
	}
}

func TestProberGivesUp(t *testing.T) {
	l, _ := watched(".")
	p := hasty(l, "127.0.0.1", "1")
	p.window = 50 * time.Millisecond
	p.start()
	p.running.Wait()
	if !l.off.Load() {
		t.Error("still on")
	}
	p = hasty(l, "127.0.0.1", "1")
	p.start()
	p.stop() // ends it at once
}

func TestProberAddress(t *testing.T) {
	for host, want := range map[string]string{"": ":53", "0.0.0.0": ":53", "::": ":53", "192.0.2.1": "192.0.2.1:53", "2001:db8::1": "[2001:db8::1]:53"} {
		if p := newProber(New("."), host, "53"); p.addr != want || p.loop.addr != want {
			t.Errorf("%q: %s", host, p.addr)
		}
	}
}

func TestSetup(t *testing.T) {
	for input, ok := range map[string]bool{"loop": true, "loop {\n}": true, "loop argument": false, "loop\nloop": false, "loop {\nx\n}": false} {
		c := caddy.NewTestController("dns", input)
		if err := setup(c); (err == nil) != ok {
			t.Errorf("%q: %v", input, err)
		}
		if ok && len(dnsserver.GetConfig(c).Plugin) != 1 {
			t.Errorf("%q: not in the chain", input)
		}
	}
	for input, want := range map[string]string{"exit": "", "break": "", "stop": "action 'stop' is not supported: must be one of exit, break", "": "Wrong argument count", "exit break": "Wrong argument count"} {
		c := caddy.NewTestController("dns", "loop {\naction "+input+"\n}")
		err := setup(c)
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("action %q: %v", input, err)
		}
		if n := len(dnsserver.GetConfig(c).Plugin); want == "" && n != map[string]int{"exit": 1, "break": 2}[input] {
			t.Errorf("action %q: %d plugins", input, n)
		}
	}
	if err := setup(caddy.NewTestController("dns", "loop x")); err == nil || !strings.Contains(err.Error(), "Wrong argument count or unexpected line ending after 'x'") {
		t.Error(err)
	}
	if err := setup(caddy.NewTestController("dns", "loop\nloop")); err == nil || !strings.Contains(err.Error(), "this plugin can only be used once per Server Block") {
		t.Error(err)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Error(got, err)
	}
}
