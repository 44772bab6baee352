package validator

import (
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// What is put beside something that was signed, and is of no RRset that was judged, is not handed on with AD, in neither lane:
// records of another class, one more alias, and what nobody has asked for, signed or not.
func TestUnread(t *testing.T) {
	v, s := lab(t, "")
	chaos := test.A("www.example. 300 IN A 192.0.2.66")
	chaos.Hdr.Class = dns.ClassCHAOS
	alias := s.replies["alias.example.CNAME"]
	s.replies["alias.example.A"] = &dns.Msg{Answer: append(alias.Answer, append([]dns.RR{test.CNAME("alias.example. 300 IN CNAME bad.example.")}, s.replies["www.example.A"].Answer...)...)}
	www := s.replies["www.example.A"]
	www.Answer, www.Extra = append(www.Answer, chaos, test.A("beside.example. 300 IN A 192.0.2.66")), []dns.RR{chaos}
	www.Answer = append(www.Answer, alias.Answer...)
	var queries []*dns.Msg
	for _, name := range []string{"www.example.", "alias.example."} {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		do(m)
		queries = append(queries, m)
		got, _, err := ask(t, v, name, do)
		if err != nil || !got.AuthenticatedData || len(got.Extra) != 1 {
			t.Fatalf("%s: %v %v", name, got, err)
		}
		for _, rr := range got.Answer {
			if owner := rr.Header().Name; owner != "www.example." && owner != name {
				t.Errorf("%s: handed on as secure: %s, which is none of it", name, rr)
			}
			if c, is := rr.(*dns.CNAME); rr.Header().Class != dns.ClassINET || is && c.Target != "www.example." {
				t.Errorf("%s: handed on as secure: %s", name, rr)
			}
		}
	}
	test.Lanes(t, func() test.Handler { return wired(above(t, s, ""), s) }, queries...)
}

// What stands in the authority section without a signature, and has the name and type of what was asked for or of an alias
// to it, is left out there: without the answer, AD would say that there is none.
func TestUnsignedCopies(t *testing.T) {
	v, s := lab(t, "")
	www, alias := s.replies["www.example.A"], s.replies["alias.example.CNAME"]
	s.replies["alias.example.A"] = &dns.Msg{Answer: append(alias.Answer, www.Answer...)}
	copies := []dns.RR{test.A("www.example. 300 IN A 192.0.2.66"), test.CNAME("alias.example. 300 IN CNAME www.example.")}
	for _, name := range []string{"www.example.", "alias.example."} {
		reply := s.replies[name+"A"]
		reply.Ns = copies
		got, _, err := ask(t, v, name, do)
		if err != nil || !got.AuthenticatedData {
			t.Fatalf("%s: %v %v", name, got, err)
		}
		if len(got.Answer) != len(reply.Answer) || len(got.Ns) > 0 {
			t.Errorf("%s: the answer is %v, beside %v", name, got.Answer, got.Ns)
		}
	}
}
