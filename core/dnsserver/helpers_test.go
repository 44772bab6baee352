package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// This file has what the tests of servers share: handlers, servers of all schemes at work, and questions to them.

// handler is a plugin made of a function.
type handler struct {
	name  string
	serve plugin.HandlerFunc
}

func (h handler) Name() string { return h.name }
func (h handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h.serve(ctx, w, r)
}

func block1(zone string, h plugin.Handler) *Config {
	return &Config{Zone: zone, ListenHosts: []string{"127.0.0.1"}, Port: "0", Transport: "dns", Plugin: []plugin.Plugin{func(plugin.Handler) plugin.Handler { return h }}}
}

// echo answers A queries with one address, after a wait if the name begins with "slow".
var echo = handler{"echo", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if strings.HasPrefix(r.Question[0].Name, "slow") {
		time.Sleep(300 * time.Millisecond)
	}
	m := new(dns.Msg).SetReply(r)
	rr, _ := dns.NewRR(r.Question[0].Name + " 60 IN A 192.0.2.1")
	m.Answer = []dns.RR{rr}
	return 0, w.WriteMsg(m)
}}

// running starts a server's UDP and TCP transports on loopback.
func running(t *testing.T, cfgs ...*Config) (s *Server, udp, tcp string) {
	t.Helper()
	s, err := NewServer("dns://127.0.0.1:0", cfgs)
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
	return s, p.LocalAddr().String(), l.Addr().String()
}

// stopping begins to stop s, which is to wait for queries that are at work. What it returns waits for the end.
func stopping(t *testing.T, s *Server) (ended func()) {
	t.Helper()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop() }()
	select {
	case err := <-stopped:
		t.Fatalf("the server ended before its queries: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	return func() {
		t.Helper()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

func ask(t *testing.T, network, addr, name string, change func(*dns.Msg)) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	if change != nil {
		change(m)
	}
	c := &dns.Client{Net: network, Timeout: clients.AskTime}
	r, _, err := c.Exchange(m, addr)
	if err != nil {
		t.Fatalf("%s %s: %v", network, name, err)
	}
	return r
}

var certificates struct {
	sync.Mutex
	config *tls.Config
}

// certificate is a TLS configuration for servers on loopback; clients do not check it.
func certificate(t testing.TB) *tls.Config {
	t.Helper()
	certificates.Lock()
	defer certificates.Unlock()
	if certificates.config == nil {
		dir, err := test.WritePEMFiles(t.(*testing.T))
		if err != nil {
			t.Fatal(err)
		}
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		certificates.config = &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	return certificates.config
}

// blockFor is a block of one handler for all names on a listener of the scheme, with TLS where the scheme has it.
func blockFor(t testing.TB, scheme string, h plugin.Handler) *Config {
	t.Helper()
	c := block1(".", h)
	scheme, _, _ = strings.Cut(scheme, "/")
	c.Transport = scheme
	if scheme != "dns" {
		c.TLSConfig = certificate(t)
	}
	return c
}

// served is a server of any scheme at work.
type served struct {
	server
	addr string // of TCP, or of UDP where there is no TCP
	udp  string // of UDP, "" if there is none
	wait func()
}

// skipLeftOut skips a test if it fails as tags of the build leave its scheme out.
func skipLeftOut(t testing.TB, err error) {
	if errors.Is(err, errLeftOut) {
		t.Skip(err)
	}
}

// serving starts a server of a block on loopback. It ends with the test.
func serving(t testing.TB, cfg *Config) *served {
	t.Helper()
	s, err := makeServer(cfg.Transport+"://127.0.0.1:0", []*Config{cfg})
	skipLeftOut(t, err)
	if err != nil {
		t.Fatal(err)
	}
	return servingMade(t, s)
}

// servingMade starts a server that was made. It ends with the test.
func servingMade(t testing.TB, s server) *served {
	t.Helper()
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	out := &served{server: s}
	var wg sync.WaitGroup
	serve := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Errorf("%s: %v", s.base().Addr, err)
			}
		})
	}
	if p != nil {
		out.udp = p.LocalAddr().String()
		out.addr = out.udp
		serve(func() error { return s.ServePacket(p) })
	}
	if l != nil {
		out.addr = l.Addr().String()
		serve(func() error { return s.Serve(l) })
	}
	out.wait = wg.Wait
	t.Cleanup(func() { s.base().Stop(); wg.Wait() })
	return out
}

// schemes are all that have a client, with the ways in which they may be spoken.
var schemes = []string{"dns", "tls", "https/1", "https/1/get", "https/2", "https/2/get", "https3", "https3/get", "quic", "grpc"}

// gate answers A queries with one address; those whose names begin with "slow" wait until it is opened.
type gate struct {
	waiting atomic.Int32 // how many wait, or have waited
	opened  chan struct{}
	open    func()
}

// newGate makes a gate that is open when the test ends.
func newGate(t *testing.T) *gate {
	g := &gate{opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	return g
}

func (g *gate) Name() string { return "gate" }

func (g *gate) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if strings.HasPrefix(r.Question[0].Name, "slow") {
		g.waiting.Add(1)
		<-g.opened
	}
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}}
	return 0, w.WriteMsg(m)
}

// holds waits until n queries wait in the gate.
func (g *gate) holds(t *testing.T, n int32) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("%d queries are at work", n), func() bool { return g.waiting.Load() == n })
}

func eachScheme(t *testing.T, f func(t *testing.T, scheme string)) {
	for _, s := range schemes {
		t.Run(s, func(t *testing.T) { f(t, s) })
	}
}

// laneHandler tells in its answers by which way they came.
type laneHandler = coretest.Lane

// parked is how many queries of the process are parked.
func parked() int {
	_, n := exec.Waits()
	return n
}

// What the tests of transports have as well.
var (
	query    = coretest.Query
	packed   = coretest.Packed
	describe = coretest.Describe
)

// limitedTo is how often a limit of a server had an effect.
func limitedTo(s *served, reason string) int {
	return int(testutil.ToFloat64(service.Limited(s.base().Addr, reason)))
}

// dial opens a connection that gives up after a while.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, clients.AskTime)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(clients.AskTime))
	t.Cleanup(func() { c.Close() })
	return c
}

// closedAfter waits until the server closes c. It reports whether that is no earlier than so long after begin.
func closedAfter(t *testing.T, c net.Conn, begin time.Time, least time.Duration) bool {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server does not close the connection")
	}
	return since(begin, least)
}

// since reports whether it is so long after begin, as coarse as timers are.
func since(begin time.Time, least time.Duration) bool {
	return time.Since(begin) > least-5*time.Millisecond
}

// expectFree sees that nobody has addr, who might share it, either.
func expectFree(t *testing.T, when, addr string) {
	t.Helper()
	if l, err := net.Listen("tcp", addr); err != nil {
		t.Errorf("%s: %v", when, err)
	} else {
		l.Close()
	}
	if p, err := net.ListenPacket("udp", addr); err != nil {
		t.Errorf("%s: %v", when, err)
	} else {
		p.Close()
	}
}
