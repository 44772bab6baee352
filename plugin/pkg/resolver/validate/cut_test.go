package validate

import (
	"testing"

	"github.com/miekg/dns"
)

// What a zone above a cut has signed is not believed where a server of the zone below has answered, though nothing is known
// of the cut so far. Whoever keeps to the rules costs no question more, whatever zone has answered.
func TestSignedAboveCut(t *testing.T) {
	w, root, z := lab(t, dns.ED25519)
	const rr = "www.example. 300 IN A 192.0.2.1"
	w.noDS(z, "www.example.", "www.example. 300 IN NSEC z.example. A RRSIG NSEC")
	up, good := root.signed(t, "", rr), z.signed(t, "", rr)
	denial := func(g *signer) []dns.RR {
		return join(g.signed(t, "", "www.example. 300 IN NSEC z.example. A RRSIG NSEC"), g.signed(t, "", "example. 3600 IN SOA ns.example. host.example. 1 2 3 4 5"))
	}
	ask := func(typ uint16, answer, authority []dns.RR, told ...string) (*Verdict, int) {
		t.Helper()
		w.told = told
		v := w.judge("www.example.", typ, message(t, "www.example.", typ, 0, answer, authority))
		return v, len(w.asked)
	}
	for _, tc := range []struct {
		what              string
		typ               uint16
		answer, authority []dns.RR
		told              []string
		want              Status
		asked             int
	}{
		{"good, of nobody", dns.TypeA, good, nil, nil, Secure, 3},
		{"good", dns.TypeA, good, nil, []string{"example."}, Secure, 3},
		{"good, of the parent, whose server has both", dns.TypeA, good, nil, []string{"."}, Secure, 3},
		{"good, behind an alias of another zone", dns.TypeA, good, nil, []string{"example.", "other."}, Secure, 3},
		{"good denial", dns.TypeMX, nil, denial(z), []string{"example."}, Secure, 3},
		{"good, where no zone is", dns.TypeA, good, nil, []string{"www.example."}, Secure, 4},
		{"of the parent", dns.TypeA, up, nil, []string{"example."}, Bogus, 3},
		{"of the parent, further below", dns.TypeA, up, nil, []string{".", "example."}, Bogus, 3},
		{"denied by the parent", dns.TypeMX, nil, denial(root), []string{"example."}, Bogus, 4},
		{"of the parent, in passing", dns.TypeA, up, nil, []string{"other."}, Secure, 1},
	} {
		v, asked := ask(tc.typ, tc.answer, tc.authority, tc.told...)
		if v.Status != tc.want || tc.want == Bogus && v.Code != dns.ExtendedErrorCodeDNSBogus && tc.typ == dns.TypeA || asked != tc.asked {
			t.Errorf("%s: %v %d %q after %d questions, want %v after %d", tc.what, v.Status, v.Code, v.Text, asked, tc.want, tc.asked)
		}
	}
}

// What denies that something is closer than a wildcard's alias denies nothing of where the alias leads: an unsigned zone
// below has no denial that is signed. A zone above a name still does not lose its say by an unsigned SOA record.
func TestAliasToUnsignedBelow(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	w.noDS(z, "un.example.", "un.example. 300 IN NSEC v.example. NS RRSIG NSEC")
	w.noDS(z, "no.example.", "no.example. 300 IN NSEC un.example. A RRSIG NSEC")
	w.noDS(z, "www.no.example.", "no.example. 300 IN NSEC un.example. A RRSIG NSEC")
	gap := z.signed(t, "", "a.example. 300 IN NSEC c.example. A RRSIG NSEC")
	for _, tc := range []struct {
		zone  string
		rcode int
		gap   []dns.RR
		want  Status
	}{
		{"un.example.", dns.RcodeSuccess, gap, Insecure},
		{"un.example.", dns.RcodeNameError, gap, Insecure},
		{"un.example.", dns.RcodeSuccess, nil, Bogus},
		{"no.example.", dns.RcodeSuccess, gap, Bogus},
	} {
		alias := z.signed(t, "b.example.", "*.example. 300 IN CNAME www."+tc.zone)
		end, _ := dns.NewRR(tc.zone + " 300 IN SOA ns.example. host.example. 1 2 3 4 5")
		v := w.judge("b.example.", dns.TypeMX, message(t, "b.example.", dns.TypeMX, tc.rcode, alias, join(tc.gap, []dns.RR{end})))
		if v.Status != tc.want || v.Rcode != tc.rcode {
			t.Errorf("to %s, %s: %v %d %q, want %v", tc.zone, dns.RcodeToString[tc.rcode], v.Status, v.Rcode, v.Text, tc.want)
		}
	}
}
