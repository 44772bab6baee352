package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// striper is a server of signed.example, whose aliases lead to a zone that is not signed, and to a name that does not exist.
// It may leave the signatures and denials out.
func striper(p *pen, strips bool) dns.HandlerFunc {
	const zone = "signed.example."
	set := func(m *[]dns.RR, texts ...string) {
		var all []dns.RR
		for _, text := range texts {
			all = append(all, record(text))
		}
		if *m = append(*m, all...); !strips {
			*m = append(*m, p.sign(all, nil))
		}
	}
	denial := func(m *dns.Msg, nsec string) {
		if set(&m.Ns, zone+" 300 IN SOA ns."+zone+" x. 1 2 3 4 60"); !strips {
			set(&m.Ns, nsec)
		}
	}
	return func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		m.SetEdns0(1232, true)
		name, typ := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
		switch host, _ := strings.CutSuffix(name, "."+zone); {
		case name == zone && typ == dns.TypeDNSKEY && !strips:
			m.Answer = append(m.Answer, p.key, p.sign([]dns.RR{p.key}, nil))
		case strings.HasPrefix(host, "far") && typ == dns.TypeA:
			set(&m.Answer, name+" 300 IN CNAME www.plain.example.")
		case strings.HasPrefix(host, "alias") && typ == dns.TypeA:
			set(&m.Answer, name+" 300 IN CNAME no"+name)
		case strings.HasPrefix(host, "no"):
			m.Rcode = dns.RcodeNameError
			denial(m, zone+" 300 IN NSEC "+zone+" NS SOA RRSIG NSEC DNSKEY")
		case strings.HasSuffix(host, "dname") && typ == dns.TypeA && host != "dname":
			set(&m.Answer, "dname."+zone+" 300 IN DNAME plain.example.")
			m.Answer = append(m.Answer, record(name+" 300 IN CNAME "+strings.TrimSuffix(host, "dname")+"plain.example."))
		default:
			denial(m, name+" 300 IN NSEC \\000."+name+" CNAME RRSIG NSEC")
		}
		_ = w.WriteMsg(m)
	}
}

// Of two servers of a zone one leaves out what the zone is signed with. Whatever aliases lead through it, the other one is
// asked for the link that does not hold, and only for that (R31).
func TestOneServerStripsBehindAliases(t *testing.T) {
	p := newPen("signed.example.")
	good, bad := both(t, striper(p, false)), both(t, striper(p, true))
	plain := reply(t, func(q *dns.Msg) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		m.Answer = append(m.Answer, record(q.Question[0].Name+" 300 IN A 192.0.2.1"))
		return m
	})
	ours := serve(t, 0, fmt.Sprintf(" validator signed.example {\n  anchor %q\n  nta plain.example\n  rfc5011 off\n  signal off\n }\n recurse {\n  stub signed.example %s %s\n  stub plain.example %s\n  allow_servers 127.0.0.0/8\n  aggressive off\n }",
		strings.ReplaceAll(p.key.String(), "\t", " "), good, bad, plain))
	for i := range 12 {
		for name, want := range map[string]string{"far%d.": "NOERROR 0 33", "alias%d.": "NXDOMAIN 1", "x%d.dname.": "NOERROR 0 33"} {
			name = fmt.Sprintf(name, i) + "signed.example."
			if got, _ := said(t, ours, name, dns.TypeA, nil); strings.TrimSuffix(got, " 29") != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}
