package thirdparty

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	whole "github.com/coredns/coredns/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// almanac is a source: it has the addresses that its stanza names, in the zones of its arguments or of its block.
type almanac struct {
	Next  plugin.Handler
	Fall  fall.F
	zones plugin.Zones
	hosts map[string]net.IP
	ttl   uint32
}

func init() { add("almanac", "template", setupAlmanac) }

// What the life of an almanac has shown.
var (
	almanacLives atomic.Int64
	almanacReady atomic.Bool
)

func setupAlmanac(c *caddy.Controller) error {
	a, err := parseAlmanac(c)
	if err != nil {
		return plugin.Error("almanac", err)
	}
	c.OnStartup(func() error { almanacLives.Add(1); return nil })
	c.OnShutdown(func() error { almanacLives.Add(-1); return nil })
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		a.Next = next
		return a
	})
	return nil
}

func parseAlmanac(c *caddy.Controller) (*almanac, error) {
	a := &almanac{hosts: map[string]net.IP{}, ttl: 60}
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return nil, plugin.ErrOnce
		}
		a.zones = plugin.OriginsFromArgsOrServerBlock(c.RemainingArgs(), c.ServerBlockKeys)
		for c.NextBlock() {
			switch c.Val() {
			case "host":
				args := c.RemainingArgs()
				if len(args) != 2 {
					return nil, c.ArgErr()
				}
				ip := net.ParseIP(args[1])
				if ip == nil {
					return nil, c.Errf("no address: '%s'", args[1])
				}
				a.hosts[plugin.Name(args[0]).Normalize()] = ip
			case "ttl":
				if !c.NextArg() {
					return nil, c.ArgErr()
				}
				ttl, err := strconv.ParseUint(c.Val(), 10, 32)
				if err != nil {
					return nil, c.Err("no TTL: " + c.Val())
				}
				a.ttl = uint32(ttl)
			case "fallthrough":
				a.Fall.SetZonesFromArgs(c.RemainingArgs())
			default:
				return nil, c.Errf("unknown property '%s'", c.Val())
			}
		}
	}
	return a, nil
}

func (a *almanac) Name() string { return "almanac" }

// Ready is found by its shape.
func (a *almanac) Ready() bool { return almanacReady.Load() }

func (a *almanac) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	zone := a.zones.Matches(state.Name())
	if zone == "" {
		return plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	}
	state.Zone = zone
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	ip, ok := a.hosts[state.Name()]
	switch {
	case !ok && a.Fall.Through(state.Name()):
		return plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	case ok && state.QType() == dns.TypeA:
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: state.QName(), Rrtype: dns.TypeA, Class: state.QClass(), Ttl: a.ttl}, A: slices.Clone(ip)}}
	case !ok:
		m.Rcode = dns.RcodeNameError
		fallthrough
	default:
		m.Ns = []dns.RR{test.SOA(zone + " 60 IN SOA ns." + zone + " mail." + zone + " 1 2 3 4 5")}
	}
	w.WriteMsg(m)
	return dns.RcodeSuccess, nil
}

func TestSource(t *testing.T) {
	readiness := loopback.Addr()
	corefile := "example.org:0 {\nbind 127.0.0.1\nwitness\nready " + readiness + "\nalmanac {\nhost WWW.example.org 192.0.2.1\nttl 7\n" +
		"fallthrough x.example.org\n}\ntemplate IN A example.org {\nanswer \"{{ .Name }} 60 IN A 192.0.2.99\"\n}\n}"
	inBothLanes(t, corefile, func(t *testing.T, s *server) {
		s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
		s.expect("www.example.org.", dns.TypeAAAA, "NOERROR ns SOA ns.example.org. mail.example.org. 1 2 3 4 5")
		s.expect("nope.example.org.", dns.TypeA, "NXDOMAIN ns SOA ns.example.org. mail.example.org. 1 2 3 4 5")
		s.expect("a.x.example.org.", dns.TypeA, "NOERROR A 192.0.2.99")
		s.expect("www.example.net.", dns.TypeA, "REFUSED")
		m := new(dns.Msg).SetQuestion("wWw.example.org.", dns.TypeA)
		if m = s.exchange("udp", m); m == nil || !m.Authoritative || m.Answer[0].Header().Name != "wWw.example.org." || m.Answer[0].Header().Ttl != 7 {
			t.Errorf("got %v", m)
		}
		for _, ready := range []bool{false, true} {
			almanacReady.Store(ready)
			if status := statusOf(t, "http://"+readiness+"/ready"); (status == http.StatusOK) != ready {
				t.Errorf("ready %t: got %d", ready, status)
			}
		}
		almanacReady.Store(false)
		if almanacLives.Load() != 1 {
			t.Errorf("%d live", almanacLives.Load())
		}
	})
	if almanacLives.Load() != 0 {
		t.Errorf("%d live on", almanacLives.Load())
	}
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// The errors of a setup tell the plugin and the line.
func TestSourceIsRefused(t *testing.T) {
	for stanza, want := range map[string]string{
		"almanac {\nhost a\n}":         "plugin/almanac: Corefile:3 - Error during parsing: Wrong argument count",
		"almanac {\nhost a b\n}":       "plugin/almanac: Corefile:3 - Error during parsing: no address: 'b'",
		"almanac {\nttl x\n}":          "plugin/almanac: Corefile:3 - Error during parsing: no TTL: x",
		"almanac {\nfoo\n}":            "plugin/almanac: Corefile:3 - Error during parsing: unknown property 'foo'",
		"almanac\nalmanac example.net": plugin.ErrOnce.Error(),
	} {
		i, err := whole.CoreDNSServer(".:0 {\n" + stanza + "\n}")
		if err == nil {
			whole.CoreDNSServerStop(i)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", stanza, err, want)
		}
	}
	if almanacLives.Load() != 0 {
		t.Error("one was started that was refused")
	}
}

// A reload starts the new one and ends the old one; one that is refused leaves the old one alone.
func TestSourceIsReloaded(t *testing.T) {
	with := func(addr string) string { return block("almanac {\nhost www.example.org " + addr + "\n}") }
	i, _, _, err := whole.CoreDNSServerAndPorts(with("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { i.ShutdownCallbacks(); whole.CoreDNSServerStop(i) }()
	for addr, ok := range map[string]bool{"192.0.2.2": true, "x": false} {
		next, err := i.Restart(whole.NewInput(with(addr)))
		if (err == nil) != ok || almanacLives.Load() != 1 {
			t.Errorf("%s: %v, %d live", addr, err, almanacLives.Load())
		}
		if err == nil {
			i = next
		}
	}
	udp, tcp := whole.CoreDNSServerPorts(i, 0)
	s := &server{t, i, map[string]string{"udp": loopback.To(udp), "tcp": loopback.To(tcp)}}
	s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.2")
}
