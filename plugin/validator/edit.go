package validator

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// edit makes of w, which holds what the plugins below answered, what the client of q gets: AD if all of it is secure and
// the client wants to know (RFC 6840 §5.8), DNSSEC records if it asks for them (RFC 4035 §3.2.1), TTLs no longer than
// signatures allow.
func (v *Validator) edit(w *wire.Reply, q *wire.Query, verdict *validate.Verdict) {
	e := editor{w: w, verdict: verdict, secure: verdict.Status == validate.Secure, proofs: q.DO(), qtype: q.Type(), least: 1<<31 - 1}
	for _, s := range verdict.Proof {
		e.least = min(e.least, s.Most, s.TTL)
	}
	for _, s := range verdict.Unproven {
		put(&e.left, owned{wire.Authority, s.Type, s.Name})
	}
	for _, s := range verdict.Unasked {
		put(&e.left, owned{wire.Answer, s.Type, s.Name})
	}
	empty := w.Count(wire.Answer)+w.Count(wire.Authority) == 0
	w.SetRcode(verdict.Rcode)
	w.SetFlag(wire.FlagAD, e.secure && !empty && (q.DO() || q.AD()))
	w.SetWriter(pluginName)
	w.Keep(e.keep)
	e.options(q)
}

// editor edits the records of one reply.
type editor struct {
	w       *wire.Reply
	verdict *validate.Verdict
	secure  bool
	proofs  bool // the client asks for them
	qtype   uint16
	least   uint32 // TTL of what is secure by others, such as the alias that a DNAME makes
	name    [wire.MaxName + 1]byte

	// A reply may have thousands of records, so what was seen is looked up.
	left   map[owned]bool // out
	single map[owned]bool // of what there can be one of
}

// owned is what records of one RRset have in common. The name is in lower case.
type owned struct {
	sec  wire.Section
	typ  uint16
	name string
}

// put adds k to a set that most replies need not have.
func put(m *map[owned]bool, k owned) {
	if *m == nil {
		*m = map[owned]bool{}
	}
	(*m)[k] = true
}

// keep reports whether the client gets record i, and gives it the TTL that it may have.
func (e *editor) keep(i int) bool {
	r := e.w.Recs()[i]
	more := r.Sec == wire.Additional
	switch {
	case r.Type == dns.TypeTSIG && more:
		return false // it was for the way between the server below and this one
	case !e.proofs && proves(r.Type) && (more || r.Type != e.qtype && e.qtype != dns.TypeANY):
		return false
	case !e.proofs && r.Type == dns.TypeDS && r.Sec == wire.Authority:
		return false // it belongs to a referral
	case !e.secure && e.left == nil:
		return true
	}
	owner := e.w.AppendOwner(e.name[:0], i)
	wire.Lower(owner, owner)
	typ := r.Type
	if data := e.w.RData(i); typ == wire.TypeRRSIG && len(data) > 2 {
		typ = binary.BigEndian.Uint16(data) // it belongs to what it signs
	}
	if e.secure && e.unread(i, owner) {
		return false
	}
	most, ok := e.least, true
	if more {
		if !e.secure {
			return true
		}
		most, ok = least(e.verdict.Additional, owner, typ)
	} else if e.left[owned{r.Sec, typ, string(owner)}] {
		return false
	} else if ttl, proven := least(e.verdict.Proof, owner, typ); proven {
		most = ttl
	}
	if ok && e.secure && e.w.TTL(i) > most {
		e.w.SetTTL(i, most)
	}
	return ok
}

// Who judges a reply reads it into RRsets (rrset.Parse). What was left out there was signed by nobody, though it may stand
// beside something that was.

// unread reports whether record i, whose owner is in lower case, is of no RRset: of another class, or one more of what
// there can be one of.
func (e *editor) unread(i int, owner []byte) bool {
	r := e.w.Recs()[i]
	switch {
	case e.class(r) != wire.ClassIN || e.single[owned{r.Sec, r.Type, string(owner)}]:
		return true
	case rrset.Single(r.Type):
		put(&e.single, owned{r.Sec, r.Type, string(owner)})
	}
	return false
}

func (e *editor) class(r wire.Rec) uint16 { return binary.BigEndian.Uint16(e.w.Bytes()[r.TTL-2:]) }

// least is the TTL that the RRset of a name and type may have, and whether it is among all.
func least(all []validate.Proven, owner []byte, typ uint16) (ttl uint32, ok bool) {
	ttl = 1<<32 - 1
	for _, s := range all {
		if s.Type == typ && s.Name == string(owner) {
			ttl, ok = min(ttl, s.Most, s.TTL), true
		}
	}
	return ttl, ok
}

// options leaves only what was explained below, unless the verdict tells more, and for which network the reply is (RFC
// 7871).
func (e *editor) options(q *wire.Query) {
	var room [256]byte
	below := append(room[:0], e.w.Options()...)
	e.w.DropOPT()
	if e.verdict.Told {
		e.w.AddEDE(e.verdict.Code, e.verdict.Text)
	}
	for len(below) >= 4 {
		code, end := binary.BigEndian.Uint16(below), 4+int(binary.BigEndian.Uint16(below[2:]))
		if end > len(below) {
			break
		}
		if code == wire.OptionEDE && !e.verdict.Told || code == wire.OptionECS {
			e.w.AddOption(code, below[4:end])
		}
		below = below[end:]
	}
	if q.EDNS().Present {
		e.w.CountOPT()
	}
}

// proves reports whether records of a type are there for proofs only.
func proves(typ uint16) bool {
	return typ == dns.TypeRRSIG || typ == dns.TypeNSEC || typ == dns.TypeNSEC3
}
