package recurse

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// An answer that lay here has no last server to speak of.
func TestNothingAsked(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("noted")}
	now, www := r.now(), rrset.New(rrset.MustName("www.example.org."), dns.TypeA, 300, "\xc0\x00\x02\x01")
	r.conf.Stores.RRsets.Put(www.Name, dns.TypeA, &store.Entry{Rank: store.AnswerData, Set: www, TTL: 300, Expires: now.After(300)}, now)
	ctx, trail := plugin.WithTrail(context.Background())
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	if _, err := trail.Serve(ctx, r, dnstest.NewRecorder(&test.ResponseWriter{}), m); err != nil {
		t.Fatal(err)
	}
	if notes := trail.Steps()[0].Notes; len(notes) != 1 || notes[0] != "no queries" {
		t.Errorf("noted %q", notes)
	}
}

// With a referral go the zone's DS records, or the proof that there are none, to who asks for DNSSEC records, and to
// nobody else (RFC 4035 §3.1.4.1), as long as they hold.
func TestReferralsAreProven(t *testing.T) {
	s := defaults()
	s.snoop = true
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("referred")}
	now, host := r.now(), []store.Host{{Name: rrset.MustName("ns.example.net.")}}
	for _, d := range []*store.Delegation{
		{Zone: rrset.MustName("signed.org."), DS: signed(t, 2, "signed.org. 60 IN DS 1 13 2 00"), Hosts: host, Expires: now.After(60), Holds: now.After(60)},
		{
			Zone: rrset.MustName("unsigned.org."), Denials: []*rrset.Set{signed(t, 2, "unsigned.org. 60 IN NSEC x.org. NS")}, Hosts: host, Expires: now.After(60),
			Holds: now.After(60),
		},
		{Zone: rrset.MustName("over.org."), DS: signed(t, 2, "over.org. 60 IN DS 1 13 2 00"), Hosts: host, Expires: now.After(60), Holds: now},
	} {
		r.conf.Stores.Delegations.Put(d, now)
	}
	for name, want := range map[string]string{"www.signed.org.": "NS DS RRSIG", "www.unsigned.org.": "NS NSEC RRSIG", "www.over.org.": "NS"} {
		for _, do := range []bool{true, false} {
			m := new(dns.Msg).SetQuestion(name, dns.TypeA)
			m.SetEdns0(1232, do)
			m.RecursionDesired = false
			w := dnstest.NewRecorder(&test.ResponseWriter{})
			_, _ = r.ServeDNS(context.Background(), w, m)
			if !do {
				want = "NS"
			}
			got := ""
			for _, rr := range w.Msg.Ns {
				got += " " + dns.TypeToString[rr.Header().Rrtype]
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("%s, DO %v:%s, want %s", name, do, got, want)
			}
		}
	}
}
