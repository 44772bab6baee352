package thirdparty

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// ledger answers from a zone that it fills record by record, also while it serves.
type ledger struct{ zone *file.Zone }

var lastLedger *ledger // the one set up last

func init() {
	add("ledger", "forward", func(c *caddy.Controller) error {
		l := &ledger{file.NewZone("example.org.", "")}
		l.zone.Upstream = upstream.New()
		for _, s := range []string{
			"example.org. 60 IN SOA ns.example.org. mail.example.org. 1 2 3 4 5", "example.org. 60 IN NS ns.example.org.",
			"ns.example.org. 60 IN A 192.0.2.1", "*.wild.example.org. 60 IN TXT wild", "out.example.org. 60 IN CNAME www.example.net.",
			"sub.example.org. 60 IN NS ns.sub.example.org.", "ns.sub.example.org. 60 IN A 192.0.2.3",
		} {
			if err := l.insert(s); err != nil {
				return plugin.Error("ledger", err)
			}
		}
		lastLedger = l
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return l })
		return nil
	})
}

func (l *ledger) insert(s string) error {
	rr, err := dns.NewRR(s)
	if err != nil {
		return err
	}
	return l.zone.Insert(rr)
}

func (l *ledger) Name() string { return "ledger" }

func (l *ledger) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r, Zone: "example.org."}
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	var result file.Result
	m.Answer, m.Ns, m.Extra, result = l.zone.Lookup(ctx, state, state.Name())
	switch result {
	case file.NameError:
		m.Rcode = dns.RcodeNameError
	case file.Delegation:
		m.Authoritative = false
	case file.ServerFailure:
		return dns.RcodeServerFailure, nil
	}
	w.WriteMsg(m)
	return dns.RcodeSuccess, nil
}

func TestZone(t *testing.T) {
	const soa = " ns SOA ns.example.org. mail.example.org. 1 2 3 4 5"
	lines := "template IN A example.net {\nanswer \"{{ .Name }} 60 IN A 192.0.2.9\"\n}\nledger"
	inBothLanes(t, block(lines), func(t *testing.T, s *server) {
		s.expect("new.example.org.", dns.TypeA, "NXDOMAIN"+soa)
		if err := lastLedger.insert("new.example.org. 60 IN A 192.0.2.2"); err != nil {
			t.Fatal(err)
		}
		s.expect("new.example.org.", dns.TypeA, "NOERROR A 192.0.2.2 ns NS ns.example.org.")
		s.expect("new.example.org.", dns.TypeTXT, "NOERROR"+soa)
		s.expect("x.wild.example.org.", dns.TypeTXT, "NOERROR TXT \"wild\" ns NS ns.example.org.")
		s.expect("x.sub.example.org.", dns.TypeA, "NOERROR ns NS ns.sub.example.org. extra A 192.0.2.3")
		s.expect("out.example.org.", dns.TypeA, "NOERROR CNAME www.example.net. A 192.0.2.9 ns NS ns.example.org.")

		var writer sync.WaitGroup
		writer.Go(func() {
			for i := range 200 {
				if err := lastLedger.insert(fmt.Sprintf("n%d.example.org. 60 IN TXT n%d", i, i)); err != nil {
					t.Error(err)
				}
			}
		})
		for range 50 {
			s.expect("ns.example.org.", dns.TypeA, "NOERROR A 192.0.2.1 ns NS ns.example.org.")
		}
		writer.Wait()
		s.expect("n199.example.org.", dns.TypeTXT, "NOERROR TXT \"n199\" ns NS ns.example.org.")
	})
}
