package dnssec

import (
	"context"
	"net"
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Bitmaps of black lies: the name exists, and has all types that are usual but the one that was asked for.
var (
	liesOfName = []uint16{dns.TypeA, dns.TypeHINFO, dns.TypeTXT, dns.TypeAAAA, dns.TypeLOC, dns.TypeSRV, dns.TypeCERT, dns.TypeSSHFP,
		dns.TypeRRSIG, dns.TypeNSEC, dns.TypeTLSA, dns.TypeHIP, dns.TypeOPENPGPKEY, dns.TypeSPF}
	liesOfApex = with(liesOfName, dns.TypeNS, dns.TypeSOA, dns.TypeMX, dns.TypeDNSKEY)
)

// typesOfCut is the types of a zone cut without DS records: the zone above has no others there (RFC 4035 §2.3).
var typesOfCut = []uint16{dns.TypeNS, dns.TypeRRSIG, dns.TypeNSEC}

// with is types and others, in ascending order.
func with(types []uint16, others ...uint16) []uint16 {
	all := slices.Concat(types, others)
	slices.Sort(all)
	return slices.Compact(all)
}

// denial signs a reply that says that a name, or a type at a name, does not exist, and adds an NSEC record that proves it: for each name
// one of its own, which covers no other. So NXDOMAIN becomes NOERROR, but for clients who know better (RFC 9824 §5).
func (s *signing) denial(res *dns.Msg) *dns.Msg {
	if len(res.Ns) != 1 {
		return res
	}
	soa, ok := res.Ns[0].(*dns.SOA)
	if !ok {
		return res
	}
	zone := s.d.signer(soa.Hdr.Name, dns.TypeSOA)
	if zone == "" {
		return res
	}
	m := *res
	m.Answer, m.Ns = s.section(res.Answer), s.section(res.Ns)
	if !plugin.Name(zone).Matches(s.end) {
		return &m // aliases lead out of the zone
	}
	nsec := &dns.NSEC{Hdr: dns.RR_Header{Name: s.end, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: min(soa.Hdr.Ttl, soa.Minttl)}}
	nsec.NextDomain = successor(dns.CanonicalName(s.end)) // one signature for all ways to write the name
	nsec.TypeBitMap = s.bitmap(res, zone)
	proof := append([]dns.RR{nsec}, s.d.sigs.of([]dns.RR{nsec}, zone, s.now, s.server)...)
	if !s.compactOK || !s.d.compact {
		m.Rcode = dns.RcodeSuccess
	}
	if res.Question[0].Qtype == dns.TypeNSEC { // which exists by now
		m.Rcode = dns.RcodeSuccess
		m.Answer, m.Ns = append(m.Answer, proof...), nil
		return &m
	}
	m.Ns = append(m.Ns, proof...)
	return &m
}

// bitmap is the types at the name that the reply is about. The slice is the reply's own: plugins above may change it.
func (s *signing) bitmap(res *dns.Msg, zone string) []uint16 {
	qtype := res.Question[0].Qtype
	if s.d.compact {
		if res.Rcode == dns.RcodeNameError {
			return []uint16{dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNXNAME}
		}
		return s.present(zone, qtype)
	}
	types := liesOfName
	switch {
	case sameName(s.end, zone):
		types = liesOfApex
	case qtype == dns.TypeDS && s.atCut():
		return slices.Clone(typesOfCut)
	}
	return without(types, qtype)
}

// without is types without the one that was asked for. NSEC and RRSIG stay in any case, also where the one asked for is
// RRSIG, of which the plugins below have none: the bitmap of each NSEC record has both, for itself and for its
// signature (RFC 4035 §2.3).
func without(types []uint16, qtype uint16) []uint16 {
	types = slices.Clone(types)
	if qtype == dns.TypeNSEC || qtype == dns.TypeRRSIG {
		return types
	}
	return slices.DeleteFunc(types, func(t uint16) bool { return t == qtype })
}

// nsecOfCut proves that a zone cut has no DS records. It reaches up to the end of what lies below the cut.
func (s *signing) nsecOfCut(cut *dns.NS) *dns.NSEC {
	return &dns.NSEC{
		Hdr:        dns.RR_Header{Name: cut.Hdr.Name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: cut.Hdr.Ttl},
		NextDomain: beyond(dns.CanonicalName(cut.Hdr.Name)),
		TypeBitMap: slices.Clone(typesOfCut),
	}
}

// atCut reports whether the name is a zone cut to the plugins below, which are asked for its NS records.
func (s *signing) atCut() bool {
	if s.d.Next == nil || s.w == nil {
		return false
	}
	_, referred := s.probe(dns.TypeNS)
	return referred
}

// probed is the types that compact denial looks for at a name one by one, in ascending order: those that zones usually hold. DNSSEC's own
// are not among them.
var probed = []uint16{dns.TypeA, dns.TypeNS, dns.TypeCNAME, dns.TypeSOA, dns.TypePTR, dns.TypeHINFO, dns.TypeMX, dns.TypeTXT, dns.TypeRP, dns.TypeAFSDB,
	dns.TypeAAAA, dns.TypeLOC, dns.TypeSRV, dns.TypeNAPTR, dns.TypeKX, dns.TypeCERT, dns.TypeDNAME, dns.TypeAPL, dns.TypeDS, dns.TypeSSHFP, dns.TypeDHCID,
	dns.TypeTLSA, dns.TypeSMIMEA, dns.TypeHIP, dns.TypeCDS, dns.TypeCDNSKEY, dns.TypeOPENPGPKEY, dns.TypeCSYNC, dns.TypeZONEMD, dns.TypeSVCB, dns.TypeHTTPS,
	dns.TypeSPF, dns.TypeURI, dns.TypeCAA}

// present is the types that the plugins below have at the name (RFC 9824 §3.1): they are asked for each that is usual, and for all by ANY,
// which not every plugin answers.
func (s *signing) present(zone string, qtype uint16) []uint16 {
	types := []uint16{dns.TypeRRSIG, dns.TypeNSEC}
	if sameName(s.end, zone) {
		types = append(types, dns.TypeDNSKEY)
	}
	for _, t := range probed {
		if t == qtype {
			continue
		}
		found, referred := s.probe(t)
		if referred { // a zone cut has nothing but its NS records, and perhaps DS
			types = append(types, dns.TypeNS)
			if has, _ := s.probe(dns.TypeDS); has && qtype != dns.TypeDS {
				types = append(types, dns.TypeDS)
			}
			return with(types)
		}
		if found {
			types = append(types, t)
		}
	}
	return with(types, s.others(qtype)...)
}

// others is the types at the name that the plugins below answer ANY with, but for the one that was asked for.
func (s *signing) others(qtype uint16) (types []uint16) {
	m := s.below(dns.TypeANY, &overStream{s.w})
	if m == nil {
		return nil
	}
	for _, rr := range m.Answer {
		if h := rr.Header(); h.Rrtype != qtype && h.Class == dns.ClassINET && sameName(h.Name, s.end) {
			types = append(types, h.Rrtype)
		}
	}
	return types
}

// overStream is a writer to a client that came over TCP: only such a one is told all RRsets of a name (RFC 8482 §4.1).
type overStream struct{ dns.ResponseWriter }

func (overStream) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// below is what the plugins below answer to a question for a type at the name, nil if they do not.
func (s *signing) below(t uint16, client dns.ResponseWriter) *dns.Msg {
	w := nonwriter.New(client)
	ctx := s.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if _, err := plugin.NextOrFailure(pluginName, s.d.Next, ctx, w, new(dns.Msg).SetQuestion(s.end, t)); err != nil {
		return nil
	}
	return w.Msg
}

// probe asks the plugins below for a type at the name; referred tells that the name is a zone cut.
func (s *signing) probe(t uint16) (found, referred bool) {
	m := s.below(t, s.w)
	if m == nil {
		return false, false
	}
	for _, rr := range m.Answer {
		if rr.Header().Rrtype == t && sameName(rr.Header().Name, s.end) {
			return true, false
		}
	}
	if len(m.Answer) == 0 && m.Rcode == dns.RcodeSuccess && !hasSOA(m.Ns) {
		for _, rr := range m.Ns {
			if rr.Header().Rrtype == dns.TypeNS && sameName(rr.Header().Name, s.end) {
				return false, true
			}
		}
	}
	return false, false
}

func hasSOA(rrs []dns.RR) bool {
	return slices.ContainsFunc(rrs, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeSOA })
}

// successor is the name that comes next behind name in canonical order (RFC 4034 §6.1), or for names that cannot be made longer, one
// behind which there is room for none in between that a zone would have.
func successor(name string) string {
	b, err := wire.AppendName(nil, name)
	if err == nil && len(b)+2 > wire.MaxName {
		return beyond(name)
	}
	return `\000.` + trimRoot(name)
}

// trimRoot is "" for the root, so that labels may be put in front.
func trimRoot(name string) string {
	if name == "." {
		return ""
	}
	return name
}

// beyond is the name that comes next behind name and all that lies below it.
func beyond(name string) string {
	b, err := wire.AppendName(nil, name)
	if err != nil || b[0] == 0 {
		return name
	}
	label, rest := b[1:1+b[0]], b[1+b[0]:]
	if len(label) < 63 && len(b) < wire.MaxName {
		label = append(slices.Clone(label), 0)
	} else if label = increment(label); len(label) == 0 {
		return beyond(wire.Text(rest))
	}
	return wire.Text(slices.Concat([]byte{byte(len(label))}, label, rest))
}

// increment is the next label of at most the same length, nothing if label is the last one. Letters are compared in lower case, so no upper-case one
// may come out.
func increment(label []byte) []byte {
	label = slices.Clone(label)
	for len(label) > 0 && label[len(label)-1] == 0xFF {
		label = label[:len(label)-1]
	}
	if len(label) == 0 {
		return nil
	}
	last := &label[len(label)-1]
	*last++
	if *last >= 'A' && *last <= 'Z' {
		*last = 'Z' + 1
	}
	return label
}
