package dnsserver

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/request"
	"github.com/coredns/coredns/test/clients"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// probe is a directive of these tests: its handler answers with the directive's first argument as a TXT record, and
// its hooks tell when they are called. Further arguments:
//
//	view TYPE   the block is a view for queries of that type
//	fails       OnStartup fails
//	late        OnShutdown is registered when OnStartup is called
//	bad         the setup fails
//	ill         OnShutdown fails
//	panics      OnShutdown panics
//	hangs       OnShutdown waits for the gate
//
// Instead of a text "on ADDRESS..." tells where to listen, and "all" does that everywhere; else it is 127.0.0.1.
type probe struct {
	text  string
	qtype uint16
}

// probing is what happens to the probes of one test.
var probing struct {
	sync.Mutex
	events []string
	gate   *gate // where queries wait whose names begin with slow
	setup  func(c *caddy.Controller)
}

func init() {
	caddy.RegisterPlugin("probe", caddy.Plugin{ServerType: serverType, Action: setupProbe})
	plugin.Register("unfit", func(*caddy.Controller) error { return errors.New("as asked") })
}

func note(event string) {
	probing.Lock()
	defer probing.Unlock()
	probing.events = append(probing.events, event)
}

// noted are the events since the last call.
func noted() string {
	probing.Lock()
	defer probing.Unlock()
	defer func() { probing.events = nil }()
	return strings.Join(probing.events, ", ")
}

// expectNoted waits for these events since the last call: a reload does not wait long for the end of what it replaces.
func expectNoted(t *testing.T, want string) {
	t.Helper()
	n := strings.Count(want, ", ") + 1
	eventually.Holds(t, want, func() bool {
		probing.Lock()
		defer probing.Unlock()
		return len(probing.events) >= n
	})
	if got := noted(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func setupProbe(c *caddy.Controller) error {
	c.Next()
	p := new(probe)
	if !c.NextArg() {
		return c.ArgErr()
	}
	p.text = c.Val()
	cfg := GetConfig(c)
	cfg.ListenHosts = []string{"127.0.0.1"}
	switch p.text {
	case "on":
		cfg.ListenHosts = c.RemainingArgs()
	case "all":
		cfg.ListenHosts = []string{""}
	}
	var fails error
	late, panics, hangs, ill := false, false, false, error(nil)
	for c.NextArg() {
		switch c.Val() {
		case "view":
			c.NextArg()
			p.qtype = dns.StringToType[c.Val()]
		case "fails":
			fails = errors.New("as asked")
		case "late":
			late = true
		case "ill":
			ill = errors.New("as asked at the end")
		case "panics":
			panics = true
		case "hangs":
			hangs = true
		case "bad":
			return errors.New("as asked")
		}
	}
	if probing.setup != nil {
		probing.setup(c)
	}
	if p.qtype != 0 {
		cfg.AddPlugin(func(next plugin.Handler) plugin.Handler { return &viewProbe{p} })
	} else {
		cfg.AddPlugin(func(next plugin.Handler) plugin.Handler { return p })
	}
	gate := probing.gate // of this test, however long it hangs
	ends := func() error {
		note(p.text + " ends")
		if hangs {
			<-gate.opened
		}
		if panics {
			panic("as asked at the end")
		}
		return ill
	}
	c.OnStartup(func() error {
		note(p.text + " starts")
		if late {
			c.OnShutdown(ends)
		}
		return fails
	})
	if !late {
		c.OnShutdown(ends)
	}
	c.OnFinalShutdown(func() error { note(p.text + " is told of the end"); return nil })
	return nil
}

func (p *probe) Name() string { return "probe" }
func (p *probe) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if strings.HasPrefix(r.Question[0].Name, "slow") {
		probing.gate.waiting.Add(1)
		<-probing.gate.opened
	}
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{p.text}}}
	return 0, w.WriteMsg(m)
}

// viewProbe is a probe that makes its block a view.
type viewProbe struct{ *probe }

func (p *viewProbe) ViewName() string { return p.text }
func (p *viewProbe) Filter(_ context.Context, r *request.Request) bool {
	return r.QType() == p.qtype
}

// probed makes the probe a directive for one test.
func probed(t *testing.T) {
	directives, quiet := Directives, Quiet
	Directives, Quiet = append(slices.Clone(directives), "probe"), true
	probing.gate, probing.setup, probing.events = newGate(t), nil, nil
	t.Cleanup(func() { Directives, Quiet = directives, quiet })
}

func inputOf(text string) caddy.Input {
	return caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(text), ServerTypeName: serverType}
}

// started starts a configuration. It ends with the test, if it has not before.
func started(t *testing.T, text string) *caddy.Instance {
	t.Helper()
	i, err := caddy.Start(inputOf(text))
	skipLeftOut(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		probing.gate.open()
		for _, i := range caddy.Instances() {
			i.ShutdownCallbacks()
			i.Stop()
			i.Wait()
		}
	})
	return i
}

// text asks for the TXT records of name, and returns the first, or else the rcode.
func text(t *testing.T, network string, addr net.Addr, name string) string {
	t.Helper()
	c := &dns.Client{Net: network, Timeout: clients.AskTime}
	r, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeTXT), addr.String())
	return textIn(r, err)
}

func textIn(r *dns.Msg, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(r.Answer) == 0:
		return dns.RcodeToString[r.Rcode]
	}
	return r.Answer[0].(*dns.TXT).Txt[0]
}
