package validator

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// reply is what the client gets of what the plugins below answered: AD if all of it is secure and the client wants to
// know (RFC 6840 §5.8), DNSSEC records if it asks for them (RFC 4035 §3.2.1), TTLs no longer than signatures allow.
func (v *Validator) reply(r, m *dns.Msg, verdict *validate.Verdict) *dns.Msg {
	out := *m
	o := r.IsEdns0()
	do, secure := o != nil && o.Do(), verdict.Status == validate.Secure
	out.MsgHdr.Id, out.Rcode = r.Id, verdict.Rcode
	out.CheckingDisabled, out.AuthenticatedData = false, secure && (do || r.AuthenticatedData)
	if len(m.Answer)+len(m.Ns) == 0 {
		out.AuthenticatedData = false
	}
	ttls := ttlsOf(verdict)
	qtype := r.Question[0].Qtype
	keep := func(rrs []dns.RR) (kept []dns.RR) {
		for _, rr := range rrs {
			h := rr.Header()
			if !do && proves(h.Rrtype) && h.Rrtype != qtype && qtype != dns.TypeANY {
				continue
			}
			k, ok := keyOf(rr)
			if ok && ttls.left[k] {
				continue
			}
			if most := ttls.of(k); secure && h.Ttl > most {
				rr = dns.Copy(rr)
				rr.Header().Ttl = most
			}
			kept = append(kept, rr)
		}
		return kept
	}
	out.Answer, out.Ns, out.Extra = keep(m.Answer), keep(m.Ns), nil
	for _, rr := range m.Extra {
		if t := rr.Header().Rrtype; t == dns.TypeOPT || t == dns.TypeTSIG || !do && proves(t) {
			continue
		}
		if secure {
			k, _ := keyOf(rr)
			most, ok := ttls.additional[k]
			if !ok {
				continue
			}
			rr = dns.Copy(rr)
			rr.Header().Ttl = min(rr.Header().Ttl, most)
		}
		out.Extra = append(out.Extra, rr)
	}
	if o != nil {
		out.Extra = append(out.Extra, options(m, o, verdict))
	}
	return &out
}

// options is the OPT record of a reply: errors that were explained below, unless this one tells more, and for which
// network the reply is (RFC 7871).
func options(m *dns.Msg, asked *dns.OPT, verdict *validate.Verdict) *dns.OPT {
	o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	o.SetUDPSize(asked.UDPSize())
	if asked.Do() {
		o.SetDo()
	}
	if verdict.Told {
		o.Option = append(o.Option, &dns.EDNS0_EDE{InfoCode: verdict.Code, ExtraText: verdict.Text})
	}
	if below := m.IsEdns0(); below != nil {
		for _, x := range below.Option {
			if x.Option() == dns.EDNS0EDE && !verdict.Told || x.Option() == dns.EDNS0SUBNET {
				o.Option = append(o.Option, x)
			}
		}
	}
	return o
}

// proves reports whether records of a type are there for proofs only.
func proves(typ uint16) bool {
	return typ == dns.TypeRRSIG || typ == dns.TypeNSEC || typ == dns.TypeNSEC3
}

// key is what an RRset is found by.
type key struct {
	name string
	typ  uint16
}

// keyOf is the RRset that a record belongs to: a signature to what it signs.
func keyOf(rr dns.RR) (k key, ok bool) {
	name, err := rrset.Name(rr.Header().Name)
	if g, is := rr.(*dns.RRSIG); is {
		return key{name, g.TypeCovered}, err == nil
	}
	return key{name, rr.Header().Rrtype}, err == nil
}

// ttls is what a verdict says of the RRsets of its reply.
type ttls struct {
	most  map[key]uint32
	least uint32 // for what is secure by others, such as the alias that a DNAME makes
	left  map[key]bool

	additional map[key]uint32
}

func ttlsOf(verdict *validate.Verdict) ttls {
	t := ttls{most: make(map[key]uint32, len(verdict.Proof)), least: 1<<31 - 1}
	for s, ttl := range verdict.Additional {
		if t.additional == nil {
			t.additional = map[key]uint32{}
		}
		t.additional[key{s.Name, s.Type}] = ttl
	}
	for s, ttl := range verdict.Proof {
		ttl = min(ttl, s.TTL)
		t.most[key{s.Name, s.Type}] = ttl
		t.least = min(t.least, ttl)
	}
	for s := range verdict.Unproven {
		if t.left == nil {
			t.left = map[key]bool{}
		}
		t.left[key{s.Name, s.Type}] = true
	}
	return t
}

func (t *ttls) of(k key) uint32 {
	if ttl, ok := t.most[k]; ok {
		return ttl
	}
	return t.least
}
