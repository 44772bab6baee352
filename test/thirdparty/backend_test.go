package thirdparty

import (
	"context"
	"errors"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// registry is a ServiceBackend: plugin.A and the like make the records of its services.
type registry struct{ services map[string][]msg.Service }

var errNoName = errors.New("no such name")

func init() {
	add("registry", "file", func(c *caddy.Controller) error {
		r := &registry{map[string][]msg.Service{
			"web.example.org.": {{Host: "192.0.2.1", Port: 80, Priority: 1, Weight: 1, TTL: 30, Key: "/skydns/org/example/web"},
				{Host: "2001:db8::1", Port: 81, Priority: 1, Weight: 3, TTL: 30, Key: "/skydns/org/example/web"}},
			"alias.example.org.":      {{Host: "web.example.org", TTL: 30}},
			"out.example.org.":        {{Host: "www.example.net", TTL: 30}},
			"self.example.org.":       {{Host: "self.example.org", TTL: 30}},
			"text.example.org.":       {{Text: "words", TTL: 30}},
			"mail.example.org.":       {{Host: "web.example.org", Mail: true, Priority: 10, TTL: 30}},
			"ns.dns.example.org.":     {{Host: "192.0.2.53", TTL: 30, Key: "/skydns/org/example/dns/ns"}},
			"1.2.0.192.in-addr.arpa.": {{Host: "web.example.org", TTL: 30}},
			"broken.example.org.":     nil,
		}}
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return r })
		return nil
	})
}

func (r *registry) Services(_ context.Context, state request.Request, _ bool, _ plugin.Options) ([]msg.Service, error) {
	all, ok := r.services[state.Name()]
	switch {
	case !ok:
		return nil, errNoName
	case all == nil:
		return nil, errors.New("the registry is broken")
	}
	return all, nil
}

func (r *registry) Reverse(ctx context.Context, state request.Request, exact bool, opt plugin.Options) ([]msg.Service, error) {
	return r.Services(ctx, state, exact, opt)
}

func (r *registry) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	return upstream.New().Lookup(ctx, state, name, typ)
}

func (r *registry) Records(ctx context.Context, state request.Request, exact bool) ([]msg.Service, error) {
	return r.Services(ctx, state, exact, plugin.Options{})
}

func (r *registry) IsNameError(err error) bool    { return errors.Is(err, errNoName) }
func (r *registry) Serial(request.Request) uint32 { return 42 }
func (r *registry) MinTTL(request.Request) uint32 { return 30 }
func (r *registry) Name() string                  { return "registry" }

func (r *registry) ServeDNS(ctx context.Context, w dns.ResponseWriter, q *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: q}
	zone := plugin.Zones{"example.org.", "192.in-addr.arpa."}.Matches(state.Name())
	if zone == "" {
		return dns.RcodeRefused, nil
	}
	state.Zone = zone
	var (
		m   = new(dns.Msg).SetReply(q)
		opt plugin.Options
		err error
	)
	switch state.QType() {
	case dns.TypeA:
		m.Answer, m.Truncated, err = plugin.A(ctx, r, zone, state, nil, opt)
	case dns.TypeAAAA:
		m.Answer, m.Truncated, err = plugin.AAAA(ctx, r, zone, state, nil, opt)
	case dns.TypeTXT:
		m.Answer, m.Truncated, err = plugin.TXT(ctx, r, zone, state, nil, opt)
	case dns.TypeCNAME:
		m.Answer, err = plugin.CNAME(ctx, r, zone, state, opt)
	case dns.TypePTR:
		m.Answer, err = plugin.PTR(ctx, r, zone, state, opt)
	case dns.TypeMX:
		m.Answer, m.Extra, err = plugin.MX(ctx, r, zone, state, opt)
	case dns.TypeSRV:
		m.Answer, m.Extra, err = plugin.SRV(ctx, r, zone, state, opt)
	case dns.TypeNS:
		m.Answer, m.Extra, err = plugin.NS(ctx, r, zone, state, opt)
	case dns.TypeSOA:
		m.Answer, err = plugin.SOA(ctx, r, zone, state, opt)
	default:
		_, _, err = plugin.A(ctx, r, zone, state, nil, opt)
	}
	switch {
	case err != nil && r.IsNameError(err):
		return plugin.BackendError(ctx, r, zone, dns.RcodeNameError, state, nil, opt)
	case err != nil:
		return plugin.BackendError(ctx, r, zone, dns.RcodeServerFailure, state, err, opt)
	case len(m.Answer) == 0:
		return plugin.BackendError(ctx, r, zone, dns.RcodeSuccess, state, nil, opt)
	}
	m.Authoritative = true
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func TestBackend(t *testing.T) {
	const soa = "SOA ns.dns.example.org. hostmaster.example.org. 42 7200 1800 86400 30"
	lines := "template IN A example.net {\nanswer \"{{ .Name }} 60 IN A 192.0.2.9\"\n}\nregistry"
	inBothLanes(t, block(lines), func(t *testing.T, s *server) {
		for _, tc := range []struct {
			name string
			typ  uint16
			want string
		}{
			{"web.example.org.", dns.TypeA, "NOERROR A 192.0.2.1"},
			{"web.example.org.", dns.TypeAAAA, "NOERROR AAAA 2001:db8::1"},
			{"web.example.org.", dns.TypeTXT, "NOERROR ns " + soa},
			{"alias.example.org.", dns.TypeA, "NOERROR CNAME web.example.org. A 192.0.2.1"},
			{"alias.example.org.", dns.TypeCNAME, "NOERROR CNAME web.example.org."},
			{"out.example.org.", dns.TypeA, "NOERROR CNAME www.example.net. A 192.0.2.9"},
			{"self.example.org.", dns.TypeA, "NOERROR ns " + soa},
			{"text.example.org.", dns.TypeTXT, `NOERROR TXT "words"`},
			{"mail.example.org.", dns.TypeMX, "NOERROR MX 10 web.example.org. extra A 192.0.2.1 extra AAAA 2001:db8::1"},
			{"web.example.org.", dns.TypeSRV, "NOERROR SRV 1 25 80 web.example.org. SRV 1 75 81 web.example.org. extra A 192.0.2.1 extra AAAA 2001:db8::1"},
			{"example.org.", dns.TypeNS, "NOERROR NS ns.dns.example.org. extra A 192.0.2.53"},
			{"example.org.", dns.TypeSOA, "NOERROR " + soa},
			{"1.2.0.192.in-addr.arpa.", dns.TypePTR, "NOERROR PTR web.example.org."},
			{"no.example.org.", dns.TypeA, "NXDOMAIN ns " + soa},
			{"broken.example.org.", dns.TypeA, "SERVFAIL ns " + soa},
		} {
			s.expect(tc.name, tc.typ, tc.want)
		}
	})
}
