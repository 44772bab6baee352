package dnssec

import (
	"context"
	"encoding/base64"
	"net"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Sign is the reply that state.Req holds, with signatures that count from now on, and with NSEC records if it denies something. state.Req
// stays as it is, and is returned itself if there is nothing to sign. server is the label of metrics.
func (d Dnssec) Sign(state request.Request, now time.Time, server string) *dns.Msg {
	s := signing{d: &d, ctx: context.Background(), w: state.W, now: now, server: server}
	return s.sign(state.Req)
}

// signing is one reply on its way through.
type signing struct {
	d         *Dnssec
	ctx       context.Context //nolint:containedctx // of the query
	w         dns.ResponseWriter
	now       time.Time
	server    string
	compactOK bool // the client takes NXDOMAIN with compact denial

	end     string // the name at the end of the answer's aliases, the question's if there are none
	aliased bool
	octets  int // what positive has put together has at least, however short its names are
}

// sign decides by the kind of the reply.
func (s *signing) sign(res *dns.Msg) *dns.Msg {
	if len(res.Question) != 1 || s.signed(res) {
		return res
	}
	kind, _ := response.Typify(res, s.now)
	denied := res.Rcode == dns.RcodeNameError && len(res.Answer) > 0
	s.follow(res)
	switch {
	case kind == response.Delegation:
		return s.referral(res)
	case kind == response.NameError, kind == response.NoData:
		return s.denial(res)
	case s.aliased && len(res.Ns) == 1 && res.Ns[0].Header().Rrtype == dns.TypeSOA && (kind == response.NoError || denied):
		return s.denial(res)
	case kind == response.NoError, denied:
		return s.positive(res)
	}
	return res
}

// signed reports whether somebody below signs for one of our zones: what answers the question's own name has a
// signature already, or what denies it. Behind aliases there may be signed records in any case, for these were a
// question to this server.
func (s *signing) signed(res *dns.Msg) bool {
	if len(res.Answer) > 0 {
		return s.hasSignature(res.Answer, res.Question[0].Name)
	}
	return s.hasSignature(res.Ns, "") || s.hasSignature(res.Extra, "")
}

// hasSignature reports whether one of our zones has signed records of name, or a DNAME record above it; any if name is
// "".
func (s *signing) hasSignature(rrs []dns.RR, name string) bool {
	for _, rr := range rrs {
		sig, ok := rr.(*dns.RRSIG)
		if !ok || name != "" && !sameName(sig.Hdr.Name, name) && (sig.TypeCovered != dns.TypeDNAME || !dns.IsSubDomain(sig.Hdr.Name, name)) {
			continue
		}
		for _, zone := range s.d.zones {
			if sameName(sig.SignerName, zone) {
				return true
			}
		}
	}
	return false
}

// follow finds where the aliases of the answer lead. If there are records of the type asked for at their end, or aliases are what was asked
// for, they count as leading nowhere.
func (s *signing) follow(res *dns.Msg) {
	q := res.Question[0]
	s.end = q.Name
	if q.Qtype == dns.TypeCNAME || q.Qtype == dns.TypeANY {
		return
	}
	for range res.Answer { // a loop of aliases ends, too
		next := target(res.Answer, s.end)
		if next == "" {
			break
		}
		s.end, s.aliased = next, true
	}
	for _, rr := range res.Answer {
		if rr.Header().Rrtype == q.Qtype && sameName(rr.Header().Name, s.end) {
			s.aliased = false
		}
	}
}

// target is where the alias at name leads, "" if there is none.
func target(rrs []dns.RR, name string) string {
	for _, rr := range rrs {
		if alias, ok := rr.(*dns.CNAME); ok && sameName(alias.Hdr.Name, name) {
			return alias.Target
		}
	}
	return ""
}

// positive signs all sections. What a message does not have room for is left out, for signatures of it would be made in
// vain.
func (s *signing) positive(res *dns.Msg) *dns.Msg {
	m := *res
	m.Answer, m.Ns, m.Extra = s.section(res.Answer), s.section(res.Ns), s.section(res.Extra)
	return &m
}

// referral signs the DS records that go with the NS records of a zone cut, or proves that there are none (RFC 4035 §3.1.4.1). NS records of
// the cut and glue are not signed: they belong to the zone below.
func (s *signing) referral(res *dns.Msg) *dns.Msg {
	var cut *dns.NS
	for _, rr := range res.Ns {
		switch rr := rr.(type) {
		case *dns.NS:
			if cut == nil {
				cut = rr
			}
		case *dns.DS:
			m := *res
			m.Ns = s.section(res.Ns, dns.TypeNS)
			return &m
		}
	}
	zone := s.d.signer(cut.Hdr.Name, dns.TypeDS)
	if apex := s.d.zones.Matches(cut.Hdr.Name); sameName(apex, cut.Hdr.Name) {
		return s.positive(res) // our own NS records
	}
	if zone == "" {
		return res
	}
	nsec := s.nsecOfCut(cut)
	m := *res
	m.Ns = append(append(make([]dns.RR, 0, len(res.Ns)+2), res.Ns...), nsec)
	m.Ns = append(m.Ns, s.d.sigs.of([]dns.RR{nsec}, zone, s.now, s.server)...)
	return &m
}

// section is the records of a section, RRset by RRset in the order in which they came, each with its signatures behind it. Types in
// but are not signed.
func (s *signing) section(rrs []dns.RR, but ...uint16) []dns.RR {
	if len(rrs) == 0 {
		return rrs
	}
	out := make([]dns.RR, 0, 2*len(rrs)+1)
	signed := coveredBy(rrs)
	for _, set := range rrsets(rrs) {
		if s.octets > dns.MaxMsgSize && set[0].Header().Rrtype != dns.TypeOPT { // others above read what options say
			continue
		}
		s.octets += atLeast(set)
		out = append(out, set...)
		h := set[0].Header()
		if unsigned(h, but) || len(signed) > 0 && signed[keyOf(h, h.Rrtype)] {
			continue
		}
		if zone := s.d.signer(h.Name, h.Rrtype); zone != "" {
			sigs := s.d.sigs.of(set, zone, s.now, s.server)
			s.octets += atLeast(sigs)
			out = append(out, sigs...)
		}
	}
	return out
}

// atLeast is how many octets records have in a message at least. Owners and names in data may be pointers, or the root.
func atLeast(rrs []dns.RR) (n int) {
	for _, rr := range rrs {
		n += 1 + 10
		switch rr := rr.(type) {
		case *dns.A:
			n += net.IPv4len
		case *dns.AAAA:
			n += net.IPv6len
		case *dns.RRSIG:
			n += 18 + base64.StdEncoding.DecodedLen(len(rr.Signature)) - 2
		}
	}
	return n
}

// unsigned reports whether records are never signed, or are of a type in but.
func unsigned(h *dns.RR_Header, but []uint16) bool {
	switch h.Rrtype {
	case dns.TypeRRSIG, dns.TypeOPT, dns.TypeTSIG, dns.TypeSIG:
		return true
	}
	for _, t := range but {
		if h.Rrtype == t {
			return true
		}
	}
	return h.Class != dns.ClassINET
}

// setKey names an RRset of class IN.
type setKey struct {
	name string // in lower case
	typ  uint16
}

func keyOf(h *dns.RR_Header, typ uint16) setKey { return setKey{strings.ToLower(h.Name), typ} }

// coveredBy is the RRsets for which there are signatures among rrs, nil if there are none.
func coveredBy(rrs []dns.RR) (all map[setKey]bool) {
	for _, rr := range rrs {
		if sig, ok := rr.(*dns.RRSIG); ok {
			if all == nil {
				all = map[setKey]bool{}
			}
			all[keyOf(&sig.Hdr, sig.TypeCovered)] = true
		}
	}
	return all
}

// rrsets is the RRsets of a section. Records that stand one after the other stay so.
func rrsets(rrs []dns.RR) [][]dns.RR {
	var c sets
	begin := 0
	for i := 1; i <= len(rrs); i++ {
		if i < len(rrs) && sameSet(rrs[i].Header(), rrs[begin].Header()) {
			continue
		}
		c.join(rrs[begin:i:i])
		begin = i
	}
	return c.all
}

// fewSets is up to how many RRsets are compared one by one.
const fewSets = 8

// sets is the RRsets of a section so far.
type sets struct {
	all   [][]dns.RR
	index map[setKey][]int // places in all, of sets of whatever class, once there are more than fewSets
}

// join adds a run of records to the set to which it belongs.
func (c *sets) join(run []dns.RR) {
	h := run[0].Header()
	if len(c.all) < fewSets {
		for i, set := range c.all {
			if sameSet(set[0].Header(), h) {
				c.all[i] = append(set, run...)
				return
			}
		}
		c.all = append(c.all, run)
		return
	}
	if c.index == nil {
		c.index = map[setKey][]int{}
		for i, set := range c.all {
			key := keyOf(set[0].Header(), set[0].Header().Rrtype)
			c.index[key] = append(c.index[key], i)
		}
	}
	key := keyOf(h, h.Rrtype)
	for _, i := range c.index[key] {
		if sameSet(c.all[i][0].Header(), h) {
			c.all[i] = append(c.all[i], run...)
			return
		}
	}
	c.index[key] = append(c.index[key], len(c.all))
	c.all = append(c.all, run)
}

func sameSet(a, b *dns.RR_Header) bool {
	return a.Rrtype == b.Rrtype && a.Class == b.Class && sameName(a.Name, b.Name)
}
