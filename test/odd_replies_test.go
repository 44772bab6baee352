package test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// What servers elsewhere answer is odder than what our own zones hold: flags and options that nobody asked for, aliases that lead nowhere,
// denials with records, rcodes beyond 15. The lanes must make the same of it.

// oddUpstream answers each question with something else, and always with the same.
func oddUpstream(t *testing.T) string {
	s := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) {
		q := r.Question[0]
		h := fnv.New32a()
		fmt.Fprint(h, strings.ToLower(q.Name), q.Qtype, r.CheckingDisabled, r.IsEdns0() != nil && r.IsEdns0().Do())
		x := rand.New(rand.NewPCG(uint64(h.Sum32()), 7))
		m := new(dns.Msg).SetReply(r)
		oddRecords(m, q, x)
		oddHeader(m, r.IsEdns0(), x)
		w.WriteMsg(m)
	})
	t.Cleanup(s.Close)
	return s.Addr
}

// oddRecords fills the sections of a reply.
func oddRecords(m *dns.Msg, q dns.Question, x *rand.Rand) {
	ttl := []int{0, 60, 3600, 2147483647}[x.IntN(4)]
	answer := func(owner string) (all []dns.RR) {
		rdata := map[uint16]string{dns.TypeA: "A 192.0.2.%d", dns.TypeAAAA: "AAAA 2001:db8::%d", dns.TypeMX: "MX %d mail.example.org.", dns.TypeSRV: "SRV 1 2 %d web.example.net."}[q.Qtype]
		if rdata == "" {
			rdata = `TXT "%d" "\000\255"`
		}
		for i := range 1 + x.IntN(4) {
			rr, err := dns.NewRR(fmt.Sprintf("%s %d IN "+rdata, owner, ttl, i))
			if err != nil {
				panic(err)
			}
			all = append(all, rr)
		}
		return all
	}
	alias := func(target string) dns.RR { return test.CNAME(fmt.Sprintf("%s %d IN CNAME %s", q.Name, ttl, target)) }
	soa := test.SOA(fmt.Sprintf("example.org. %d IN SOA ns1.example.org. hostmaster.example.org. 1 7200 3600 1209600 60", ttl))
	switch x.IntN(12) {
	case 0:
		m.Rcode, m.Ns = dns.RcodeNameError, []dns.RR{soa}
	case 1:
		m.Ns = []dns.RR{soa}
	case 2:
		m.Rcode = []int{dns.RcodeServerFailure, dns.RcodeRefused, dns.RcodeNotAuth, 11, dns.RcodeBadCookie, 3841}[x.IntN(6)]
	case 3, 4:
		m.Answer = append([]dns.RR{alias("target.example.net.")}, answer("target.example.net.")...)
	case 5:
		m.Answer, m.Ns = []dns.RR{alias("nope.example.net.")}, []dns.RR{soa}
		m.Rcode = x.IntN(2) * dns.RcodeNameError
	case 6:
		m.Rcode, m.Answer = dns.RcodeNameError, answer(q.Name)
	case 7:
		m.Ns = []dns.RR{test.NS(fmt.Sprintf("sub.example.org. %d IN NS ns1.sub.example.org.", ttl))}
		m.Extra = []dns.RR{test.A(fmt.Sprintf("ns1.sub.example.org. %d IN A 192.0.2.1", ttl))}
	case 8: // nothing at all
	default:
		m.Answer = answer(q.Name)
	}
}

// oddHeader sets flags and options, whatever was asked for.
func oddHeader(m *dns.Msg, asked *dns.OPT, x *rand.Rand) {
	m.Authoritative, m.RecursionAvailable, m.AuthenticatedData, m.Zero = x.IntN(3) == 0, x.IntN(2) == 0, x.IntN(5) == 0, x.IntN(9) == 0
	m.Compress = x.IntN(2) == 0
	if asked == nil {
		m.Rcode &= 0xF // there is no room for the rest
		return
	}
	m.SetEdns0(1232, asked.Do())
	opt := m.IsEdns0()
	opt.Option = [][]dns.EDNS0{
		nil,
		{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeProhibited, ExtraText: "why"}},
		{&dns.EDNS0_LOCAL{Code: 65001, Data: []byte{1, 2}}, &dns.EDNS0_LOCAL{Code: 65001}},
		{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "6162"}},
		{&dns.EDNS0_PADDING{Padding: make([]byte, 12)}, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE, Timeout: 100}},
	}[x.IntN(5)]
	for _, o := range asked.Option {
		if network, ok := o.(*dns.EDNS0_SUBNET); ok && x.IntN(2) == 0 {
			scoped := *network
			scoped.SourceScope = 24
			opt.Option = append(opt.Option, &scoped)
		}
	}
}

func TestLanesAgreeOnOddReplies(t *testing.T) {
	upstream, queries := oddUpstream(t), corpus(815, 600)
	for _, lines := range []string{
		"",
		"cache",
		"nsid here\ncache {\nserve_stale 1h verify\n}\nminimal",
		"nsid here\nloadbalance\nheader {\nresponse set ra\n}",
		"cache 30 {\nkeepttl\ndenial 100 20\n}\nrewrite edns0 subnet set 24 56\nbufsize 512",
		"cache {\ndisable denial\n}\nrewrite rcode suffix example.org SERVFAIL NXDOMAIN\nrewrite ttl suffix example.org 30-100",
		"dns64 {\nallow_ipv4\ntranslate_all\n}\nminimal",
		"metadata\ncancel 5s\nlocal\nany\nchaos v a\nrewrite name suffix .example.net .example.org answer auto\ncache {\necs strip\n}",
	} {
		compareLanes(t, t, laneCase{lines, lines + "\nforward . " + upstream + " {\nfailover REFUSED\n}\n", 0.3, !strings.Contains(lines, "cache")}, queries)
	}
}
