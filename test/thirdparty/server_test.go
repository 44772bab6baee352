// Package thirdparty has small plugins as others write them, one a file, with nothing but the exported API, and runs
// each in a whole server: over UDP and TCP, in both lanes. What they rely on beyond types is tested here.
package thirdparty

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	whole "github.com/coredns/coredns/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// add puts a directive before another one, as a line of plugin.cfg would, and registers its setup.
func add(name, before string, setup caddy.SetupFunc) {
	at := slices.Index(dnsserver.Directives, before)
	if at < 0 {
		panic("no directive " + before)
	}
	dnsserver.Directives = slices.Insert(dnsserver.Directives, at, name)
	plugin.Register(name, setup)
}

// server is one that runs, for one test.
type server struct {
	t        *testing.T
	instance *caddy.Instance
	addrs    map[string]string // by network
}

// start starts a server with the Corefile given, whose first listener is asked.
func start(t *testing.T, corefile string) *server {
	t.Helper()
	i, udp, tcp, err := whole.CoreDNSServerAndPorts(corefile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.ShutdownCallbacks()
		whole.CoreDNSServerStop(i)
	})
	return &server{t, i, map[string]string{"udp": loopback.To(udp), "tcp": loopback.To(tcp)}}
}

// block is the Corefile of one block for all names, at a port that the system chooses.
func block(lines string) string { return ".:0 {\nbind 127.0.0.1\nwitness\n" + lines + "\n}\n" }

// inBothLanes starts a server with the Corefile for each lane, and has check ask it. If the Corefile has the directive
// witness, the lanes have to be what they are said to be.
func inBothLanes(t *testing.T, corefile string, check func(t *testing.T, s *server)) {
	t.Helper()
	was := dnsserver.WireLane
	defer func() { dnsserver.WireLane = was }()
	for _, lane := range []bool{true, false} {
		t.Run(fmt.Sprintf("wire=%t", lane), func(t *testing.T) {
			dnsserver.WireLane = lane
			asBytes.Store(0)
			check(t, start(t, corefile))
			if got := asBytes.Load(); got > 0 != lane && strings.Contains(corefile, "witness") {
				t.Errorf("%d queries were served as bytes", got)
			}
		})
	}
}

// exchange is the reply to m over a network, nil if there is none in time.
func (s *server) exchange(network string, m *dns.Msg) *dns.Msg {
	s.t.Helper()
	c := &dns.Client{Net: network, Timeout: 5 * time.Second}
	reply, _, err := c.Exchange(m, s.addrs[network])
	if err != nil {
		s.t.Errorf("%s: %v: %v", network, m.Question, err)
		return nil
	}
	return reply
}

// expect asks over UDP and TCP, and compares what each reply says with want.
func (s *server) expect(name string, typ uint16, want string) {
	s.t.Helper()
	for _, network := range []string{"udp", "tcp"} {
		if got := text(s.exchange(network, new(dns.Msg).SetQuestion(name, typ))); got != want {
			s.t.Errorf("%s: %s %s: got %q, want %q", network, name, dns.TypeToString[typ], got, want)
		}
	}
}

// text is the rcode of a message and the data of its records, with signs between the sections.
func text(m *dns.Msg) string {
	if m == nil {
		return "no reply"
	}
	s := dns.RcodeToString[m.Rcode]
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			if h := rr.Header(); h.Rrtype != dns.TypeOPT {
				s += []string{" ", " ns ", " extra "}[i] + dns.TypeToString[h.Rrtype] + " " + rr.String()[len(h.String()):]
			}
		}
	}
	return s
}

// asBytes counts the queries that came to a witness in the wire lane.
var asBytes atomic.Int64

// witness is a plugin of both lanes that passes all on.
type witness struct{ next plugin.Handler }

func init() {
	add("witness", dnsserver.Directives[0], func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &witness{next} })
		return nil
	})
}

func (w *witness) Name() string             { return "witness" }
func (w *witness) WireSelf() plugin.Handler { return w }

func (w *witness) ServeDNS(ctx context.Context, rw dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(w.Name(), w.next, ctx, rw, r)
}

func (w *witness) ServeWire(ctx context.Context, reply *wire.Reply, q *wire.Query) wire.Outcome {
	asBytes.Add(1)
	return plugin.NextWire(w.Name(), w.next, ctx, reply, q)
}
