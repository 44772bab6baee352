package cache

import (
	"slices"
	"testing"

	"github.com/miekg/dns"
)

// A reply that is not kept has the question's case, too: owners that differ from it in case only follow it, as in the wire
// lane. Others stay as they are, and so does the message of the plugin below, which may be the zone's own records.
func TestOwnersOfRepliesNotKept(t *testing.T) {
	for name, tc := range map[string]struct {
		rcode    int
		question string
		records  []string
		owners   []string
	}{
		"dangling": {0, "WwW.example.org.", []string{"www.EXAMPLE.org. 60 IN CNAME a.example.org."}, []string{"WwW.example.org."}},
		"refused": {dns.RcodeRefused, "WwW.example.org.", []string{"www.example.org. 60 IN A 192.0.2.1", "ns Example.org. 60 IN NS ns.example.org."},
			[]string{"WwW.example.org.", "Example.org."}},
		"badvers": {dns.RcodeBadVers, "WWW.example.org.", []string{"ns www.example.org. 60 IN NS a.", "ar www.example.org. 60 IN A 192.0.2.1"},
			[]string{"WWW.example.org.", "WWW.example.org."}},
		"escaped": {0, `A\.b.example.org.`, []string{`a\.B.example.org. 60 IN CNAME a.`, `a.B.example.org. 60 IN A 192.0.2.1`},
			[]string{`A\.b.example.org.`, "a.B.example.org."}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.says(tc.rcode, tc.records...)
			m, _ := w.ask(tc.question, dns.TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false) })
			if n := w.c.positive.len() + w.c.negative.len(); n != 0 {
				t.Fatal("it is kept")
			}
			var owners []string
			for _, rr := range append(append(m.Answer, m.Ns...), m.Extra...) {
				if rr.Header().Rrtype != dns.TypeOPT {
					owners = append(owners, rr.Header().Name)
				}
			}
			if !slices.Equal(owners, tc.owners) {
				t.Errorf("%v, want %v", owners, tc.owners)
			}
		})
	}

	w := newWorld(t, nil)
	w.says(0, "example.org. 60 IN SOA a. b. 1 2 3 4 5", "example.org. 60 IN NS a.", "example.org. 60 IN SOA a. b. 1 2 3 4 5")
	if m, _ := w.ask("Example.org.", dns.TypeAXFR, nil); m.Answer[0].Header().Name != "example.org." {
		t.Errorf("a transfer is changed: %v", m.Answer[0])
	}

	own := &dns.CNAME{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: 60}, Target: "a."}
	answer := []dns.RR{own}
	w = newWorld(t, nil)
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = answer
		return 0, rw.WriteMsg(m)
	})
	if m, _ := w.ask("WWW.example.org.", dns.TypeA, nil); m.Answer[0].Header().Name != "WWW.example.org." {
		t.Error(m)
	}
	if answer[0] != dns.RR(own) || own.Hdr.Name != "www.example.org." {
		t.Errorf("the plugin's own record is changed: %v", answer)
	}
}
