package upstream_test

import (
	"context"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// server is a server without sockets whose block for zone is served by h.
func server(t *testing.T, zone string, h plugin.HandlerFunc) *dnsserver.Server {
	t.Helper()
	s, err := dnsserver.NewServer("dns://:53", []*dnsserver.Config{{
		Zone: zone, Port: "53", Transport: "dns", ListenHosts: []string{""},
		Plugin: []plugin.Plugin{func(plugin.Handler) plugin.Handler { return h }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLookup(t *testing.T) {
	var asked *dns.Msg
	s := server(t, "example.org.", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		asked = r
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A("www.example.org. 5 IN A 192.0.2.1")}
		w.WriteMsg(m)
		return dns.RcodeSuccess, nil
	})
	query := new(dns.Msg).SetQuestion("alias.example.net.", dns.TypeAAAA)
	query.Question[0].Qclass = dns.ClassCHAOS
	query.SetEdns0(1400, true)
	query.CheckingDisabled = true
	state := request.Request{W: &test.ResponseWriter{}, Req: query}

	ctx := context.WithValue(t.Context(), dnsserver.Key{}, s)
	ctx = context.WithValue(ctx, dnsserver.LoopKey{}, 0)
	m, err := upstream.New().Lookup(ctx, state, "www.example.org", dns.TypeA)
	if err != nil || m == nil || len(m.Answer) != 1 {
		t.Fatalf("got %v, %v", m, err)
	}
	if q := asked.Question[0]; q != (dns.Question{Name: "www.example.org.", Qtype: dns.TypeA, Qclass: dns.ClassINET}) {
		t.Errorf("asked for %v", q)
	}
	if o := asked.IsEdns0(); o == nil || !o.Do() || o.UDPSize() != 1400 || !asked.CheckingDisabled {
		t.Errorf("the question is not the client's: %v", asked)
	}
	if query.Question[0].Name != "alias.example.net." {
		t.Errorf("the query was changed: %v", query)
	}
}

// Aliases of which each leads to several others cost one query no more than so many lookups.
func TestAgainBranches(t *testing.T) {
	served := 0
	up := upstream.New()
	s := server(t, "example.org.", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		served++
		ctx, ok := upstream.Again(ctx, upstream.MaxLoops)
		for range 3 {
			if ok {
				up.Lookup(ctx, request.Request{W: w, Req: r}, "www.example.org", dns.TypeA)
			}
		}
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetReply(r))
	})
	for range 2 { // each query has its own
		served = 0
		s.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		if served < upstream.MaxLoops || served > 1+100 {
			t.Errorf("one query led to %d lookups, want %d at most", served-1, 100)
		}
	}
}

func TestLookupOutcomes(t *testing.T) {
	state := request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion("example.org.", dns.TypeA)}
	_, err := upstream.New().Lookup(t.Context(), state, "example.org.", dns.TypeA)
	if err == nil || err.Error() != "no full server is running" {
		t.Errorf("without a server: %v", err)
	}
	drop := server(t, "example.org.", func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return dns.RcodeSuccess, nil })
	ctx := context.WithValue(t.Context(), dnsserver.Key{}, drop)
	if m, err := upstream.New().Lookup(ctx, state, "example.org.", dns.TypeA); m != nil || err != nil {
		t.Errorf("dropped: %v, %v", m, err)
	}
	if m, err := upstream.New().Lookup(ctx, state, "example.net.", dns.TypeA); err != nil || m == nil || m.Rcode != dns.RcodeRefused {
		t.Errorf("no zone: %v, %v", m, err)
	}
}
