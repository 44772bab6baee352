package shed

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// listener is one that sheds, or not.
type listener bool

func (l listener) Shed() bool { return bool(l) }

// next notes that it was reached.
type next struct{ reached int }

func (n *next) Name() string             { return "next" }
func (n *next) WireSelf() plugin.Handler { return n }
func (n *next) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	n.reached++
	return 7, nil
}
func (n *next) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	n.reached++
	return wire.Block
}

func TestShed(t *testing.T) {
	for _, tc := range []struct {
		server any
		tcp    bool
		drop   bool
	}{
		{listener(true), false, true},
		{listener(false), false, false},
		{listener(true), true, false},
		{nil, false, false}, // a test of somebody else, without a server
		{&dnsserver.Server{}, false, false},
	} {
		ctx := context.WithValue(t.Context(), dnsserver.Key{}, tc.server)
		n := new(next)
		s := &Shed{Next: n}
		m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)

		rc, err := s.ServeDNS(ctx, &test.ResponseWriter{TCP: tc.tcp}, m)
		if dropped := n.reached == 0; dropped != tc.drop || err != nil || dropped && rc != dns.RcodeSuccess || !dropped && rc != 7 {
			t.Errorf("%+v: reached %d, got %d, %v", tc, n.reached, rc, err)
		}

		n.reached = 0
		q, w := new(wire.Query), new(wire.Reply)
		peer := wire.Peer{}
		if tc.tcp {
			peer.Proto = wire.TCP
		}
		b, _ := m.Pack()
		if !q.Parse(b) {
			t.Fatal("not eligible")
		}
		q.Peer = peer
		w.Reset(make([]byte, 512))
		out := s.ServeWire(ctx, w, q)
		if dropped := n.reached == 0; dropped != tc.drop || dropped != (out == wire.Done && w.Dropped()) || !dropped && out != wire.Block {
			t.Errorf("%+v: reached %d, got %v", tc, n.reached, out)
		}
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input string
		keys  []string
		err   string
	}{
		{"shed", []string{"dns://.:53"}, ""},
		{"shed", nil, ""},
		{"shed extra", nil, "Wrong argument count"},
		{"shed {\ndepth 10\n}", nil, "plugin/shed: Testfile:2 - Error during parsing: shed takes no options"},
		{"shed\nshed", nil, "this plugin can only be used once per Server Block"},
		{"shed", []string{"dns://.:53", "tls://.:53"}, `plugin/shed: Testfile:1 - Error during parsing: only plain DNS server blocks are supported; "tls://.:53" uses transport "tls"`},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = tc.keys
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v: got error %v, want %q", tc.input, tc.keys, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		config := dnsserver.GetConfig(c)
		if !config.Shed || len(config.Plugin) != 1 || config.Plugin[0](nil).Name() != "shed" {
			t.Errorf("%q: got %t, %d plugins", tc.input, config.Shed, len(config.Plugin))
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
