package validator

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// unchecked edits replies to queries with CD. AD says what was found out here, which is nothing, and not what a server
// below says (RFC 4035 §3.2.3).
type unchecked struct{ *Validator }

// Edit implements plugin.Editor.
func (u unchecked) Edit(w *wire.Reply, q *wire.Query) {
	w.SetFlag(wire.FlagAD, false)
	u.screen(w, q)
}

// EditMsg implements plugin.Editor.
func (u unchecked) EditMsg(m, _ *dns.Msg) *dns.Msg {
	left := u.screened(m)
	switch {
	case left != m:
		if opt := left.IsEdns0(); opt != nil {
			o := *opt
			o.Option = append(o.Option[:len(o.Option):len(o.Option)], &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeFiltered, ExtraText: filtered})
			left.Extra[slices.Index(left.Extra, dns.RR(opt))] = &o
		}
		return left
	case !m.AuthenticatedData:
		return m
	}
	c := *m
	c.AuthenticatedData = false
	return &c
}
