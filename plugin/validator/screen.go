package validator

import (
	"encoding/binary"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// This file takes addresses out of answers that the resolver below keeps from clients. That comes after validation, as of
// what is left of a signed RRset nothing can be proven.

var _ advice.Screener = (*Validator)(nil)

// Screens implements advice.Screener.
func (v *Validator) Screens() []string { return v.zones }

// filtered is the extra text of what something was taken out of.
const filtered = "private address"

// screen takes them out of what w holds, the reply to q.
func (v *Validator) screen(w *wire.Reply, q *wire.Query) {
	if v.guard == nil || !slices.ContainsFunc(w.Recs(), func(r wire.Rec) bool { return rrset.Addressed(r.Type) }) {
		return
	}
	r, err := q.Msg()
	if err != nil {
		return
	}
	m, err := w.Msg(r)
	if err != nil {
		return
	}
	left := v.screened(m)
	if left == m {
		return
	}
	options, resolved := slices.Clone(w.Options()), w.NonAuthoritative()
	w.Reset(nil)
	if err := w.SetMsg(left); err != nil {
		w.Fail(wire.ServFail, err)
		return
	}
	w.SetNonAuthoritative(resolved)
	w.SetWriter(pluginName)
	// What else was told of the reply still holds: why it is insecure, and for which network it is (RFC 7871).
	for len(options) >= 4 {
		code, end := binary.BigEndian.Uint16(options), 4+int(binary.BigEndian.Uint16(options[2:]))
		if end > len(options) {
			break
		}
		if code == wire.OptionEDE || code == wire.OptionECS {
			w.AddOption(code, options[4:end])
		}
		options = options[end:]
	}
	w.AddEDE(dns.ExtendedErrorCodeFiltered, filtered)
	if q.EDNS().Present {
		w.CountOPT()
	}
}

// screened is m without them, m itself if there is none. RRsets that are not whole any more have no signatures, the message
// has no AD, and if nothing is left but aliases, no proofs of the answer either.
func (v *Validator) screened(m *dns.Msg) *dns.Msg {
	if v.guard == nil || !slices.ContainsFunc(m.Answer, func(rr dns.RR) bool { return rrset.Addressed(rr.Header().Rrtype) }) {
		return m
	}
	parsed, err := parse(m)
	if err != nil {
		return m
	}
	out, whole, empty := *m, true, true
	for _, set := range parsed.Section[rrset.Answer] {
		left := set.WithoutAddresses(v.guard.Guarded)
		if left != nil && set.Type != dns.TypeCNAME && set.Type != dns.TypeDNAME {
			empty = false
		}
		if left == set {
			continue
		}
		of := func(rr dns.RR) bool { return belongs(rr, set) }
		at := slices.IndexFunc(m.Answer, of)
		owner := m.Answer[at].Header().Name
		out.Answer = slices.DeleteFunc(slices.Clone(out.Answer), of)
		if left != nil {
			out.Answer = append(out.Answer, records(left, owner)...)
		}
		whole = false
	}
	if whole {
		return m
	}
	out.AuthenticatedData = false
	if out.Extra = slices.Clone(m.Extra); empty {
		out.Ns = nil
	}
	return &out
}

// belongs reports whether rr is one of set's records, or of its signatures.
func belongs(rr dns.RR, set *rrset.Set) bool {
	typ := rr.Header().Rrtype
	if g, ok := rr.(*dns.RRSIG); ok {
		typ = g.TypeCovered
	}
	if typ != set.Type {
		return false
	}
	name, err := rrset.Name(rr.Header().Name)
	return err == nil && name == set.Name
}

// records is a set's records.
func records(set *rrset.Set, owner string) (all []dns.RR) {
	set.Each(func(rdata string) bool {
		h := dns.RR_Header{Name: owner, Rrtype: set.Type, Class: dns.ClassINET, Ttl: set.TTL, Rdlength: uint16(len(rdata))}
		if rr, _, err := dns.UnpackRRWithHeader(h, []byte(rdata), 0); err == nil {
			all = append(all, rr)
		}
		return true
	})
	return all
}
