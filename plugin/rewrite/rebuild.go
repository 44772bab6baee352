package rewrite

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// reply makes of what w holds a reply to q, which is the client's query again: ResponseReverter's work, on bytes.
func (p *rewriting) reply(w *wire.Reply, q *wire.Query) {
	rename := p.renamed
	switch {
	case w.Failed() && !plugin.ClientWrite(w.Rcode()): // nobody has written: an error reply goes by the same rules
		rename = false // it is begun with the client's question
		rcode, err := w.Rcode(), w.Err()
		w.Begin(q)
		w.SetWriter(pluginName)
		w.SetRcode(rcode)
		w.SetFlag(wire.FlagRA, edns.Resolves(err))
		w.SetErrAs(dns.RcodeSuccess, err)
		if q.EDNS().Present {
			for code, text := range edns.Explanations(err) {
				w.AddEDE(code, text)
				w.CountOPT()
			}
		}
	case !w.Holds():
		return
	case p.wantsMessage(w):
		p.throughMessage(w, q)
		return
	}
	if rename {
		p.rebuild(w, q)
		if p.unproven(q) {
			w.SetFlag(wire.FlagAD, false)
		}
	}
	rcode := w.Rcode()
	for i := len(p.rules) - 1; i >= 0; i-- {
		e := p.rules[i].(edit)
		rcode = e.rcode(rcode)
		for j := range w.Recs() {
			if ttl := w.TTL(j); e.ttl(ttl) != ttl {
				w.SetTTL(j, e.ttl(ttl))
			}
		}
	}
	if p.validated && rcode != w.Rcode() { // which nobody has signed
		w.SetFlag(wire.FlagAD, false)
	}
	w.SetRcode(rcode)
}

// wantsMessage reports whether a reply has an OPT record of an upstream that would be lost, or that a rule is about.
func (p *rewriting) wantsMessage(w *wire.Reply) bool {
	if _, ok := w.OPT(); !ok {
		return false
	}
	for _, rule := range p.rules {
		if r, ok := rule.(*optionRevert); ok {
			if _, ok := w.Option(r.rule.code); ok {
				return true
			}
		}
	}
	return p.renamed
}

// unproven reports whether a validator has seen another name than q's: nobody has signed the reply for that.
func (p *rewriting) unproven(q *wire.Query) bool {
	return p.validated && p.renamed && string(q.LookedUp()) != string(q.Lower())
}

// throughMessage makes the reply by way of a message.
func (p *rewriting) throughMessage(w *wire.Reply, q *wire.Query) {
	flags, _ := w.OPT()
	err := w.Err()
	m := new(dns.Msg)
	if uerr := wire.UnpackInto(m, w.End(wire.End{Limit: wire.MaxMessage, OPT: true, OPTFlags: flags})); uerr != nil {
		w.Fail(wire.ServFail, uerr)
		return
	}
	rev := ResponseReverter{asked: dns.Question{Name: wire.Text(q.Name()), Qtype: q.Type(), Qclass: q.Class()}, validated: p.validated}
	for _, rule := range p.rules {
		if r, ok := rule.(*optionRevert); ok {
			rule = &optionRevert{rule: r.rule, old: r.rule.first(unpackOptions(q.EDNS().Options))}
		}
		rev.ResponseRules = append(rev.ResponseRules, rule)
	}
	rev.restore(m)
	rev.revert(m)
	m.AuthenticatedData = m.AuthenticatedData && !p.unproven(q)
	if serr := w.SetMsgOPT(m); serr != nil {
		w.Fail(wire.ServFail, serr)
		return
	}
	w.SetErr(err)
}

// oldReply is a message as it was, with room for what is made of it.
type oldReply struct {
	msg  []byte
	recs []wire.Rec

	owner, rdata        []byte // of the record at hand
	name, next          []byte // in wire form: what a rule has made, and what the next one makes of it
	lower, text, edited []byte
	lastOwner, lastName []byte // the last owner, and what it became: the next one is mostly the same
}

// end is where record i ends.
func (f *oldReply) end(i int) int {
	if i+1 < len(f.recs) {
		return int(f.recs[i+1].Off)
	}
	return len(f.msg)
}

// rebuild writes the reply anew, with the client's question and other names.
func (p *rewriting) rebuild(w *wire.Reply, q *wire.Query) {
	f := &p.old
	f.msg = append(f.msg[:0], w.Bytes()...)
	f.recs = append(f.recs[:0], w.Recs()...)
	f.lastOwner = f.lastOwner[:0]
	rcode, err := w.Rcode(), w.Err()
	var flags [len(headerBits)]bool
	for i, bit := range headerBits {
		flags[i] = w.Flag(bit)
	}
	w.Begin(q)
	w.SetRcode(rcode)
	w.SetErr(err)
	for i, bit := range headerBits {
		w.SetFlag(bit, flags[i])
	}
	for i, r := range f.recs {
		at := int(r.TTL)
		f.owner, _ = wire.AppendNameAt(f.owner[:0], f.msg, int(r.Off))
		p.appendRData(r.Type, at+6, f.end(i))
		class, ttl := binary.BigEndian.Uint16(f.msg[at-2:]), binary.BigEndian.Uint32(f.msg[at:])
		w.Record(r.Sec, p.ownerOf(q), r.Type, class, ttl, f.rdata)
	}
}

// headerBits are those that a reply has of its own.
var headerBits = [...]uint16{wire.FlagAA, wire.FlagTC, wire.FlagRA, wire.FlagAD}

// ownerOf is what the owner at hand becomes. One that comes out as q's name is written as the client wrote it.
func (p *rewriting) ownerOf(q *wire.Query) []byte {
	f := &p.old
	if string(f.owner) == string(f.lastOwner) {
		return f.lastName
	}
	f.lastOwner = append(f.lastOwner[:0], f.owner...)
	name := p.edit(f.owner, edit.owner)
	if wire.EqualFold(name, q.Name()) && string(name) != string(f.owner) {
		name = q.Name()
	}
	f.lastName = append(f.lastName[:0], name...)
	return f.lastName
}

// edit is what a name becomes by one of the methods of the rules, applied from the end. It is good until the next call.
func (p *rewriting) edit(name []byte, by func(e edit, b, name, shown []byte) ([]byte, bool)) []byte {
	f := &p.old
	f.text = wire.AppendText(f.text[:0], name)
	f.lower = append(f.lower[:0], f.text...)
	wire.Lower(f.lower, f.lower)
	for i := len(p.rules) - 1; i >= 0; i-- {
		var ok bool
		if f.edited, ok = by(p.rules[i].(edit), f.edited[:0], f.lower, f.text); !ok {
			continue
		}
		made, err := wire.AppendName(f.next[:0], f.edited)
		if err != nil {
			continue // it would be no name: the one before stays
		}
		f.name, f.next, name = made, f.name, made
		f.text, f.edited = f.edited, f.text
		f.lower = append(f.lower[:0], f.text...)
		wire.Lower(f.lower, f.lower)
	}
	return name
}

// appendRData puts the RDATA that stands in the old reply from off to end into f.rdata, with names in full and, where it
// is what the record leads to, as the rules make it.
func (p *rewriting) appendRData(typ uint16, off, end int) {
	f := &p.old
	lead, names, target := namesIn(typ, f.msg[off:end])
	f.rdata = append(f.rdata[:0], f.msg[off:min(off+lead, end)]...)
	off += lead
	var room [wire.MaxName + 1]byte
	for i := 0; i < names && off < end; i++ {
		name, ok := wire.AppendNameAt(room[:0], f.msg, off)
		if !ok {
			break
		}
		for off < end && f.msg[off] != 0 && f.msg[off] < 0xC0 {
			off += int(f.msg[off]) + 1
		}
		if off < end && f.msg[off] >= 0xC0 {
			off++
		}
		off++
		if i == 0 && target {
			name = p.edit(name, edit.value)
		}
		f.rdata = append(f.rdata, name...)
	}
	f.rdata = append(f.rdata, f.msg[min(off, end):end]...)
}

// namesIn tells where names stand in RDATA: behind how many octets, how many, and whether the first is what the record
// leads to, which value rules are about.
func namesIn(typ uint16, rdata []byte) (lead, names int, target bool) {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR, wire.TypeDNAME:
		return 0, 1, true
	case wire.TypeMX:
		return 2, 1, true
	case wire.TypeSRV:
		return 6, 1, true
	case wire.TypeSOA:
		return 0, 2, true
	case dns.TypeNAPTR:
		at := 4
		for range 3 { // flags, services, expression
			if at >= len(rdata) {
				return len(rdata), 0, false
			}
			at += int(rdata[at]) + 1
		}
		return min(at, len(rdata)), 1, true
	case dns.TypeMD, dns.TypeMF, dns.TypeMB, dns.TypeMG, dns.TypeMR:
		return 0, 1, false
	case dns.TypeMINFO:
		return 0, 2, false
	}
	return len(rdata), 0, false
}
