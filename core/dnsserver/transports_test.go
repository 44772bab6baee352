package dnsserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// This file starts servers of all schemes, and has a client for each that keeps one connection and asks several
// questions on it at one time.

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

// serving starts a server of a block on loopback. It ends with the test.
func serving(t testing.TB, cfg *Config) *served {
	t.Helper()
	s, err := makeServer(cfg.Transport+"://127.0.0.1:0", []*Config{cfg})
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
	out := &served{server: s}
	var wg sync.WaitGroup
	serve := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Errorf("%s: %v", cfg.Transport, err)
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
	eventually(t, fmt.Sprintf("%d queries are at work", n), func() bool { return g.waiting.Load() == n })
}

func eachScheme(t *testing.T, f func(t *testing.T, scheme string)) {
	for _, s := range schemes {
		t.Run(s, func(t *testing.T) { f(t, s) })
	}
}

func query(name string) *dns.Msg { return new(dns.Msg).SetQuestion(name, dns.TypeA) }

func TestEachSchemeAnswers(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		s := serving(t, blockFor(t, scheme, new(laneHandler)))
		c := clients.Connect(t, scheme, s.addr)
		for name, want := range map[string]string{
			"www.":        "NOERROR 192.0.2.1",
			"unpack.":     "NOERROR 192.0.2.3",
			"block.":      "NOERROR 192.0.2.2",
			"park.":       "NOERROR 192.0.2.2",
			"parkunpack.": "NOERROR 192.0.2.3",
			"parkblock.":  "NOERROR 192.0.2.2",
			"parksame.":   "NOERROR 192.0.2.3",
			"fail.":       "REFUSED",
			"panic.":      "SERVFAIL",
			"local.":      "NOERROR 127.0.0.1",
		} {
			r, err := c.Ask(query(name))
			if err != nil || describe(r) != want || r.Question[0].Name != name {
				t.Errorf("%s: got %s, %v, want %s", name, describe(r), err, want)
			}
		}
		// All of a long reply comes.
		if r, err := c.Ask(query("long.")); err != nil || len(r.Answer) != 200 || r.Truncated {
			t.Errorf("long: %v, %v", r, err)
		}
	})
}

// TestFastQueryDoesNotWait has three queries wait and a fourth one, on the same connection, that need not.
func TestFastQueryDoesNotWait(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		g := newGate(t)
		s := serving(t, blockFor(t, scheme, g))
		c := clients.Connect(t, scheme, s.addr)
		if _, err := c.Ask(query("warm.")); err != nil {
			t.Fatal(err)
		}
		var slow sync.WaitGroup
		for i := range 3 {
			slow.Go(func() {
				if r, err := c.Ask(query(fmt.Sprintf("slow%d.", i))); err != nil || len(r.Answer) != 1 {
					t.Errorf("got %v, %v", r, err)
				}
			})
		}
		g.holds(t, 3) // none of them waits for another
		if r, err := c.Ask(query("fast.")); err != nil || len(r.Answer) != 1 {
			t.Errorf("got %v, %v", r, err)
		}
		g.open()
		slow.Wait()
	})
}

// TestEachSchemePads asks with the options that transports answer by themselves, in both lanes.
func TestEachSchemePads(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		s := serving(t, blockFor(t, scheme, new(laneHandler)))
		c := clients.Connect(t, scheme, s.addr)
		for _, name := range []string{"www.", "unpack.", "fail.", "block."} {
			m := query(name).SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 50)}}
			if scheme == "dns" || scheme == "tls" {
				m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE})
			}
			r, err := c.Ask(m)
			if err != nil {
				t.Fatal(err)
			}
			r.Compress = true
			padding, keepalive := 0, 0
			for _, o := range r.IsEdns0().Option {
				switch o.(type) {
				case *dns.EDNS0_PADDING:
					padding++
				case *dns.EDNS0_TCP_KEEPALIVE:
					keepalive++
				}
			}
			encrypted, stream := scheme != "dns", scheme == "dns" || scheme == "tls"
			if (padding == 1) != encrypted || (keepalive == 1) != stream || encrypted && r.Len() != 468 {
				t.Errorf("%s: %d octets, %v", name, r.Len(), r.IsEdns0())
			}
			if r, err := c.Ask(query(name).SetEdns0(1232, false)); err != nil || len(r.IsEdns0().Option) != 0 {
				t.Errorf("%s: %v, %v", name, r.IsEdns0(), err)
			}
		}
	})
}
