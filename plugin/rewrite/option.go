package rewrite

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// optionRule adds an EDNS option to the query, changes it, or takes it out.
type optionRule struct {
	mode
	kind   optionKind
	code   uint16
	action string
	revert bool

	// What a local option holds: data, or the value of a variable or a label.
	data     []byte
	variable string
	label    string

	v4len, v6len int // of a subnet option

	reverted optionRevert // of the wire lane, in which what the client sent is known at the end, too
}

// optionKind is what an optionRule is about.
type optionKind uint8

const (
	localOption  optionKind = iota // a code that has no meaning for the server
	nsidOption                     // NSID (RFC 5001)
	subnetOption                   // client subnet (RFC 7871)
)

// newSize is the UDP size of an OPT record that a rule had to make.
const newSize = 4096

// placement is what is to be done with an option.
type placement uint8

const (
	leave placement = iota
	replace
	add
	remove
)

// place decides what is done, by whether such an option is there.
func (r *optionRule) place(found bool) placement {
	switch {
	case r.action == Unset && found:
		return remove
	case r.action == Unset:
		return leave
	case found && r.action == Append, !found && r.action == Replace:
		return leave
	case found:
		return replace
	}
	return add
}

// concerns reports whether the rule is about options of a code. A local rule is not about codes that have a meaning.
func (r *optionRule) concerns(code uint16) bool {
	return code == r.code && (r.kind != localOption || !meaningful(code))
}

// meaningful reports whether an option of a code is read as something else than octets.
func meaningful(code uint16) bool {
	switch code {
	case dns.EDNS0LLQ, dns.EDNS0UL, dns.EDNS0NSID, dns.EDNS0ESU, dns.EDNS0DAU, dns.EDNS0DHU, dns.EDNS0N3U, dns.EDNS0SUBNET, dns.EDNS0EXPIRE,
		dns.EDNS0COOKIE, dns.EDNS0TCPKEEPALIVE, dns.EDNS0PADDING, dns.EDNS0EDE, dns.EDNS0REPORTING, dns.EDNS0ZONEVERSION:
		return true
	}
	return false
}

// edit appends options to b as the rule makes them, data being what an option is to hold. It reports whether they differ.
func (r *optionRule) edit(b, options, data []byte) (out []byte, did bool) {
	found := false
	for len(options) >= 4 {
		n := min(4+int(binary.BigEndian.Uint16(options[2:])), len(options))
		one := options[:n]
		options = options[n:]
		if !r.concerns(binary.BigEndian.Uint16(one)) || found && r.action != Unset {
			b = append(b, one...)
			continue
		}
		found = true
		switch r.place(true) {
		case leave:
			b = append(b, one...)
		case replace:
			b, did = wire.AppendOption(b, r.code, data), true
		case remove:
			did = true
		}
	}
	if !found && r.place(false) == add {
		b, did = wire.AppendOption(b, r.code, data), true
	}
	return b, did
}

// Rewrite implements Rule. state.Req gets an OPT record of its own; if it had none, also where there is no option to be
// replaced or taken out.
func (r *optionRule) Rewrite(ctx context.Context, state request.Request) (ResponseRules, Result) {
	var q wire.Query
	if err := q.SetMsg(state.Req, wire.PeerOf(state.W.RemoteAddr(), state.W.LocalAddr())); err != nil {
		return nil, RewriteIgnored
	}
	data, ok := r.value(nil, ctx, &q)
	if !ok {
		return nil, RewriteIgnored
	}
	options, did := r.edit(nil, q.EDNS().Options, data)
	asked := state.Req.IsEdns0()
	if !did && asked != nil {
		return nil, RewriteIgnored
	}
	opt := unpackOptions(options)
	if opt == nil { // what the rule adds is no such option
		return nil, RewriteIgnored
	}
	if asked != nil {
		opt.Hdr = asked.Hdr
	}
	putOPT(state.Req, opt)
	if !did {
		return nil, RewriteIgnored
	}
	if !r.revert {
		return nil, RewriteDone
	}
	return ResponseRules{&optionRevert{rule: r, old: r.first(asked)}}, RewriteDone
}

// rewriteWire implements wireRule.
func (r *optionRule) rewriteWire(p *rewriting, q *wire.Query) verdict {
	if r.label != "" {
		return unpack // labels are found in the message lane
	}
	if r.revert && slices.Contains(p.changed, r.code) {
		return unpack // as what the client sent is not what comes back
	}
	var ok bool
	if p.data, ok = r.value(p.data[:0], nil, q); !ok {
		return ignored
	}
	e := q.EDNS()
	options, did := r.edit(p.spare[:0], e.Options, p.data)
	p.spare = options
	if !e.Present {
		e.Present = true
		q.SetSize(newSize)
	}
	if !did {
		return ignored
	}
	p.spare, p.options = p.options, options // the next rule reads these and writes those
	e.Options, e.Set = options, optionSet(options)
	q.SetSize(e.Size) // as it was: the query is to be packed anew
	if r.revert {
		p.rules = append(p.rules, &r.reverted)
	} else {
		p.changed = append(p.changed, r.code)
	}
	return done
}

// optionSet is which options there are.
func optionSet(options []byte) (set wire.OptionSet) {
	for len(options) >= 4 {
		switch binary.BigEndian.Uint16(options) {
		case wire.OptionNSID:
			set |= wire.HasNSID
		case wire.OptionECS:
			set |= wire.HasECS
		case wire.OptionExpire:
			set |= wire.HasExpire
		case wire.OptionCookie:
			set |= wire.HasCookie
		case wire.OptionKeepalive:
			set |= wire.HasKeepalive
		case wire.OptionPadding:
			set |= wire.HasPadding
		default:
			set |= wire.HasOther
		}
		options = options[min(4+int(binary.BigEndian.Uint16(options[2:])), len(options)):]
	}
	return set
}

// unpackOptions is an OPT record with options, nil if they cannot be read.
func unpackOptions(options []byte) *dns.OPT {
	e := wire.EDNS{Size: newSize, Options: options}
	rr, _, err := dns.UnpackRR(e.Append(nil), 0)
	opt, ok := rr.(*dns.OPT)
	if err != nil || !ok {
		return nil
	}
	return opt
}

// putOPT makes opt the OPT record of m, in a slice of its own.
func putOPT(m *dns.Msg, opt *dns.OPT) {
	former := m.IsEdns0()
	extra := make([]dns.RR, 0, len(m.Extra)+1)
	for _, rr := range m.Extra {
		if former != nil && rr == dns.RR(former) {
			rr = opt
		}
		extra = append(extra, rr)
	}
	if former == nil {
		extra = append(extra, opt)
		if n := len(extra); n > 1 && extra[n-2].Header().Rrtype == dns.TypeTSIG {
			extra[n-2], extra[n-1] = extra[n-1], extra[n-2] // a signature stands last (RFC 8945 §5.1)
		}
	}
	m.Extra = extra
}

// first is the first option in opt that the rule is about, nil if there is none.
func (r *optionRule) first(opt *dns.OPT) dns.EDNS0 {
	if opt != nil {
		for _, o := range opt.Option {
			if r.concerns(o.Option()) {
				return o
			}
		}
	}
	return nil
}

// optionRevert takes an option back in a reply whose sender has repeated it.
type optionRevert struct {
	untouched
	rule *optionRule
	old  dns.EDNS0 // what there was before: what the client had sent, if no rule has changed it, nil if nothing
}

// RewriteResponse implements ResponseRule. It is about the OPT record.
func (e *optionRevert) RewriteResponse(_ *dns.Msg, rr dns.RR) {
	opt, ok := rr.(*dns.OPT)
	if !ok {
		return
	}
	var kept []dns.EDNS0
	for _, o := range opt.Option {
		switch {
		case !e.rule.concerns(o.Option()):
			kept = append(kept, o)
		case e.old != nil:
			kept = append(kept, e.old)
		}
	}
	opt.Option = kept
}
