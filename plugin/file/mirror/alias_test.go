package mirror

import (
	"context"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// around is the context of a server that answers from elsewhere, and from m.
func around(t *testing.T, m *Mirror, elsewhere map[string][]string) context.Context {
	t.Helper()
	cfg := &dnsserver.Config{Zone: ".", ListenHosts: []string{"127.0.0.1"}, Port: "0"}
	cfg.AddPlugin(func(plugin.Handler) plugin.Handler {
		return plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			q := r.Question[0]
			if dns.IsSubDomain("example.org.", q.Name) {
				return m.ServeDNS(ctx, w, r)
			}
			reply := new(dns.Msg).SetReply(r)
			records, ok := elsewhere[q.Name]
			if !ok {
				reply.Rcode = dns.RcodeNameError
			}
			for _, text := range records {
				rr, err := dns.NewRR(text)
				if err != nil {
					t.Error(err)
				}
				if typ := rr.Header().Rrtype; typ == q.Qtype || typ == dns.TypeCNAME {
					reply.Answer = append(reply.Answer, rr)
				}
			}
			if q.Name == "broken.example.net." {
				return dns.RcodeServerFailure, nil
			}
			return dns.RcodeSuccess, w.WriteMsg(reply)
		})
	})
	s, err := dnsserver.NewServer("dns://127.0.0.1:0", []*dnsserver.Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	return context.WithValue(context.Background(), dnsserver.Key{}, s)
}

func TestAliases(t *testing.T) {
	p := &provider{zones: map[string][]string{"z": {soa}}}
	for _, a := range []struct {
		owner  string
		typ    uint16
		target string
	}{
		{"example.org.", dns.TypeA, "LB.example.net."}, {"example.org.", dns.TypeAAAA, "lb.example.net."},
		{"four.example.org.", dns.TypeA, "lb.example.net."},
		{"*.wild.example.org.", dns.TypeA, "lb.example.net."},
		{"both.example.org.", dns.TypeA, "lb.example.net."}, {"both.example.org.", dns.TypeA, "other.example.net."},
		{"gone.example.org.", dns.TypeA, "gone.example.net."},
		{"broken.example.org.", dns.TypeA, "broken.example.net."},
		{"loop.example.org.", dns.TypeA, "loop.example.org."},
		{"mixed.example.org.", dns.TypeA, "other.example.net."},
		{"half.example.org.", dns.TypeA, "broken.example.net."}, {"half.example.org.", dns.TypeA, "other.example.net."},
		{"kept.example.org.", dns.TypeA, "broken.example.net."},
		{"twins.example.org.", dns.TypeA, "other.example.net."}, {"twins.example.org.", dns.TypeA, "twin.example.net."},
	} {
		rr, err := Alias(a.owner, a.typ, a.target)
		if err != nil {
			t.Fatal(err)
		}
		p.zones["z"] = append(p.zones["z"], rr.String())
	}
	p.zones["z"] = append(p.zones["z"], "example.org. 60 MX 10 mx.example.net.", "www.example.org. 60 CNAME four.example.org.", "plain.example.org. 60 A 192.0.2.77",
		"mixed.example.org. 60 A 192.0.2.9", "mixed.example.org. 60 A 192.0.2.3", "kept.example.org. 60 A 192.0.2.9", "to.example.org. 60 CNAME mixed.example.org.")
	m, err := mirrored(t, p, fall.F{}, Hosted{"example.org.", "z"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := around(t, m, map[string][]string{
		"lb.example.net.":    {"lb.example.net. 300 CNAME node.example.net.", "node.example.net. 20 A 192.0.2.1", "node.example.net. 60 A 192.0.2.2", "node.example.net. 60 AAAA 2001:db8::1"},
		"other.example.net.": {"other.example.net. 30 A 192.0.2.3"}, "twin.example.net.": {"twin.example.net. 20 A 192.0.2.3"},
	})
	for _, tc := range []struct {
		name string
		typ  uint16
		want string
		lane bool // it is answered in the wire lane
	}{
		{"example.org.", dns.TypeA, "NOERROR aa A 192.0.2.1; A 192.0.2.2", false},
		{"example.org.", dns.TypeAAAA, "NOERROR aa AAAA 2001:db8::1", false},
		{"example.org.", dns.TypeMX, "NOERROR aa MX 10 mx.example.net.", true},
		{"four.example.org.", dns.TypeAAAA, "NOERROR aa ", true},
		{"www.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.1; A 192.0.2.2; CNAME four.example.org.", false},
		{"x.wild.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.1; A 192.0.2.2", false},
		{"both.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.1; A 192.0.2.2; A 192.0.2.3", false},
		{"gone.example.org.", dns.TypeA, "NOERROR aa ", false},
		{"broken.example.org.", dns.TypeA, "nothing", false},
		{"loop.example.org.", dns.TypeA, "nothing", false},
		{"mixed.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.3; A 192.0.2.9", false},
		{"to.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.3; A 192.0.2.9; CNAME mixed.example.org.", false},
		{"half.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.3", false},
		{"kept.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.9", false},
		{"twins.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.3", false},
		{"plain.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.77", true},
		{"nope.example.org.", dns.TypeA, "NXDOMAIN aa ", true},
	} {
		r := new(dns.Msg).SetQuestion(tc.name, tc.typ)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rc, err := m.ServeDNS(ctx, rec, r)
		got := "nothing"
		if rec.Msg != nil {
			got = textOf(rec.Msg)
		} else if rc != dns.RcodeServerFailure || err == nil {
			t.Errorf("%s: nothing, %d, %v", tc.name, rc, err)
		}
		if got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.name, dns.TypeToString[tc.typ], got, tc.want)
		}
		for i := 0; rec.Msg != nil && i < len(rec.Msg.Answer); i++ {
			if h := rec.Msg.Answer[i].Header(); h.Rrtype == dns.TypeA && tc.name == "x.wild.example.org." && (h.Name != tc.name || h.Ttl != 20) {
				t.Errorf("%s", rec.Msg.Answer[i])
			}
		}
		b, _ := r.Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		q.Parse(b)
		switch out := m.ServeWire(ctx, &w, &q); {
		case out != wire.Done && out != wire.Unpack, (out == wire.Done) != tc.lane:
			t.Errorf("%s %s: %v in the wire lane", tc.name, dns.TypeToString[tc.typ], out)
		case q.Type() != tc.typ || q.Changed():
			t.Errorf("%s: the query is not as it was", tc.name)
		}
	}
	if rr, err := Alias("x.example.org.", dns.TypeMX, "y."); err == nil {
		t.Error(rr)
	}
}
