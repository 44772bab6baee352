package cache

import (
	"encoding/binary"
	"time"

	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// verdict is what the cache makes of a reply.
type verdict struct {
	kind    response.Type
	ttl     uint32 // seconds; all records get this TTL if treat is set
	treat   bool   // the reply is of a kind that is kept, so its TTLs are made one
	store   bool   // it is kept
	answers bool   // it really answers the question
}

// facts are those of a reply that do not stand in its records.
type facts struct {
	question    *wire.Query
	truncated   bool
	checkSigs   bool // the reply says DO: signatures outside their time spoil it
	clientScope bool // it holds for clients that it does not tell (RFC 7871 §7.3)
	now         time.Time
}

// classify decides whether a reply is kept, for how long, and as what (RFC 2308, RFC 9520).
func (s *settings) classify(w *wire.Reply, f facts) verdict {
	soa := soaOf(w)
	v := verdict{kind: kindOf(w, f, soa >= 0)}
	if v.kind == response.NoError && w.Count(wire.Answer) > 0 {
		v.answers = answers(w, f.question)
		if !v.answers && soa >= 0 {
			v.kind = response.NoData // an alias to a name without the type
		}
	}
	switch v.kind {
	case response.NoError:
		if w.Count(wire.Answer) > 0 && !v.answers {
			return v
		}
		v.ttl = bound(leastTTL(w), s.success.min, s.success.max)
	case response.Delegation:
		if s.noReferrals && !f.question.RD() {
			return v
		}
		v.ttl = bound(minimalTTL, s.success.min, s.success.max)
	case response.NameError, response.NoData:
		if soa < 0 {
			return v
		}
		ttl := leastTTL(w)
		if !s.ignoreMinimum {
			ttl = min(ttl, soaMinimum(w, soa)) // RFC 2308 §5
		}
		v.ttl = bound(ttl, s.denial.min, s.denial.max)
	case response.ServerError:
		v.ttl = uint32(s.servfail / time.Second)
	default:
		return v
	}
	if f.truncated || f.clientScope || hasType(w, wire.Additional, dns.TypeTSIG) { // a signature holds for one reply
		return v
	}
	v.treat = true
	v.store = v.ttl > 0 && !s.disabled(v.kind, f.question.Lower())
	return v
}

// minimalTTL is how long what has no TTL of its own is kept, in seconds.
const minimalTTL = 5

func bound(ttl, least, most uint32) uint32 { return min(max(ttl, least), most) }

// kindOf sorts a reply by its rcode and by which sections hold what. A denial with an alias
// before it is a denial of the alias' target (RFC 2308 §2.1).
func kindOf(w *wire.Reply, f facts, soa bool) response.Type {
	if t := f.question.Type(); t == wire.TypeAXFR || t == wire.TypeIXFR {
		return response.Meta
	}
	if f.checkSigs && response.Expired(w, f.now) {
		return response.OtherError
	}
	answer := w.Count(wire.Answer) > 0
	switch w.Rcode() {
	case wire.Success:
		switch {
		case answer:
			return response.NoError
		case soa:
			return response.NoData
		case hasType(w, wire.Authority, wire.TypeNS):
			return response.Delegation
		}
		return response.NoError
	case wire.NXDomain:
		if answer && !soa {
			return response.OtherError
		}
		return response.NameError
	case wire.ServFail, wire.NotImplemented:
		return response.ServerError
	}
	return response.OtherError
}

func hasType(w *wire.Reply, s wire.Section, typ uint16) bool {
	for _, r := range w.Section(s) {
		if r.Type == typ {
			return true
		}
	}
	return false
}

// soaOf is the index of the SOA record of the authority section, -1 if there is none.
func soaOf(w *wire.Reply) int {
	for i, r := range w.Recs() {
		if r.Sec == wire.Authority && r.Type == wire.TypeSOA {
			return i
		}
	}
	return -1
}

// soaMinimum is the last field of an SOA record.
func soaMinimum(w *wire.Reply, i int) uint32 {
	data := w.RData(i)
	if len(data) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(data[len(data)-4:])
}

// leastTTL is the least TTL of all records.
func leastTTL(w *wire.Reply) uint32 {
	if len(w.Recs()) == 0 {
		return minimalTTL
	}
	least := w.TTL(0)
	for i := range w.Recs() {
		least = min(least, w.TTL(i))
	}
	return least
}

// answers reports whether w really answers q.
func answers(w *wire.Reply, q *wire.Query) bool {
	return w.Rcode() == wire.Success && w.Answers(q)
}
