package zone

import (
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// ANY is answered with one RRset over UDP and with all over streams (RFC 8482 §4.1); aliases are not followed.
func TestAny(t *testing.T) {
	z := build(t, "example.org.", apex+`many A 192.0.2.1
many A 192.0.2.2
many AAAA 2001:db8::1
many TXT x
alias CNAME many
d DNAME many
*.w MX 1 many
*.w TXT y
a.ent A 192.0.2.3
sub NS ns.sub
ns.sub A 192.0.2.4
`)
	for _, tc := range []struct{ name, udp, stream string }{
		{"many.example.org.", "NOERROR A A", "NOERROR A A TXT AAAA"},
		{"alias.example.org.", "NOERROR CNAME", "NOERROR CNAME"},
		{"x.d.example.org.", "NOERROR DNAME CNAME", "NOERROR DNAME CNAME"},
		{"x.w.example.org.", "NOERROR MX", "NOERROR MX TXT"},
		{"example.org.", "NOERROR NS NS", "NOERROR NS NS SOA"},
		{"ent.example.org.", "NOERROR", "NOERROR"},
		{"none.example.org.", "NXDOMAIN", "NXDOMAIN"},
		{"sub.example.org.", "NOERROR", "NOERROR"},
	} {
		for _, stream := range []bool{false, true} {
			want, peer := tc.udp, wire.Peer{}
			if stream {
				want, peer = tc.stream, wire.Peer{Limit: wire.MaxMessage}
			}
			var q wire.Query
			if err := q.SetMsg(new(dns.Msg).SetQuestion(tc.name, dns.TypeANY), peer); err != nil {
				t.Fatal(err)
			}
			var a Answerer
			var w wire.Reply
			w.Reset(nil)
			a.Answer(z, &w, &q)
			m := new(dns.Msg)
			if err := m.Unpack(w.Finish(&q, 1232)); err != nil {
				t.Fatal(err)
			}
			got := []string{dns.RcodeToString[m.Rcode]}
			for _, rr := range m.Answer {
				got = append(got, dns.TypeToString[rr.Header().Rrtype])
			}
			soa := slices.ContainsFunc(m.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeSOA })
			if text := strings.Join(got, " "); text != want || soa != (len(got) == 1 && tc.name != "sub.example.org.") {
				t.Errorf("%s, stream %t: %s, want %s\n%v", tc.name, stream, text, want, m)
			}
		}
	}
}
