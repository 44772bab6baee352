package proxy

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Facts is what a reply says of itself, for who decides what becomes of it.
type Facts struct {
	Rcode   int   // with the upper bits of the OPT record (RFC 6891 §6.1.3)
	Answers int   // records of the answer section
	TC      bool  // it was truncated
	opt     int32 // where its OPT record begins, 0 if it has none
}

// verdict is what octets that came from an upstream are.
type verdict uint8

const (
	proper        verdict = iota
	cutShort              // proper up to its question, and then ends too early
	bare                  // an error without a question; see BareError
	tooShort              // no header, or none with one question
	notReply              // QR is not set
	otherID               // nobody waits for it
	otherQuestion         // not what was asked
	malformed             // cannot be unpacked
	otherCookie           // not from who was shown a cookie
	otherCase             // the name's letters are not as they were sent
	otherAddress          // from somebody else than the server that was asked
	verdicts
)

// String is the verdict's word in metrics.
func (v verdict) String() string {
	return [verdicts]string{"proper", "cut_short", "bare", "too_short", "not_reply", "id", "question", "malformed", "cookie", "case", "address"}[v]
}

// incoming is a message that came from an upstream, looked at without knowledge of any query.
type incoming struct {
	Facts
	id   uint16
	qend int // where its question ends
}

// inspect decides whether b is a reply that can be unpacked, whatever it answers. b is only read.
//
// Messages as nearly all upstreams send them are walked here; whatever else there may be is given to
// github.com/miekg/dns, which has the last word. So what is proper here unpacks there. Messages with names that are not
// worth the effort (wire.Effort) are malformed, whoever sends them: each reader after this one would have to spend it
// again.
func inspect(b []byte) (in incoming, v verdict) {
	if len(b) < wire.HeaderLen+5 || binary.BigEndian.Uint16(b[4:]) != 1 {
		if BareError(b) {
			return bareError(b), bare
		}
		return in, tooShort
	}
	flags := binary.BigEndian.Uint16(b[2:])
	if flags&wire.FlagQR == 0 {
		return in, notReply
	}
	n := wire.NameLen(b[wire.HeaderLen:])
	in.qend = wire.HeaderLen + n + 4
	if n == 0 || in.qend > len(b) {
		return in, tooShort
	}
	in.id = binary.BigEndian.Uint16(b)
	in.TC = flags&wire.FlagTC != 0
	in.Answers = int(binary.BigEndian.Uint16(b[6:]))
	in.Rcode = int(flags & 0xF)
	if opt, ok := walk(b, in.qend); ok {
		if in.opt = int32(opt); opt > 0 {
			in.Rcode |= int(b[opt+5]) << 4
		}
		return in, proper
	}
	if !wire.Affordable(b) {
		return in, malformed
	}
	return in, in.unpack(b)
}

// unpack is the slow way of inspect.
func (in *incoming) unpack(b []byte) verdict {
	var m dns.Msg
	err := m.Unpack(b)
	switch {
	case err == nil && (len(m.Answer) < in.Answers || len(m.Ns) < int(binary.BigEndian.Uint16(b[8:]))):
		return cutShort // at the end of a record, where Unpack takes what there is for all
	case err == nil: // a count of additional records may be that of the query, as some servers have it
		in.Rcode, in.Answers, in.opt = m.Rcode, len(m.Answer), int32(findOPT(b))
		return proper
	case errors.Is(err, dns.ErrBuf), strings.Contains(err.Error(), "overflow"):
		return cutShort
	}
	return malformed
}

// answers reports whether b, which is proper or cut short, has the question of query: the same name
// without regard to case, type and class.
func (in *incoming) answers(b, query []byte) bool {
	end := in.qend - 4
	return len(query) >= in.qend &&
		wire.EqualFold(b[wire.HeaderLen:end], query[wire.HeaderLen:end]) &&
		string(b[end:in.qend]) == string(query[end:in.qend])
}

// empty cuts b, which is cut short, behind its question and sets TC, so that its client asks over TCP.
func (in *incoming) empty(b []byte) []byte {
	in.TC, in.Answers, in.opt = true, 0, 0
	b = b[:in.qend]
	b[2] |= wire.FlagTC >> 8
	clear(b[6:wire.HeaderLen])
	return b
}

// walk goes through the records from off to the message's end. It reports false if they are not what it
// knows, which does not mean that they are wrong. opt is where the OPT record begins, 0 if there is none.
func walk(b []byte, off int) (opt int, ok bool) {
	left := wire.EffortOf(len(b))
	counts := binary.BigEndian.Uint64(b[4:])
	main := int(counts>>32&0xFFFF) + int(counts>>16&0xFFFF)
	for i := range main + int(counts&0xFFFF) {
		const fixed = 10 // type, class, TTL, length
		_, at := left.Name(b, off)
		if at == 0 || at+fixed > len(b) {
			return 0, false
		}
		typ := binary.BigEndian.Uint16(b[at:])
		end := at + fixed + int(binary.BigEndian.Uint16(b[at+8:]))
		if end > len(b) || !ordinary(typ, b[:end], at+fixed, &left) {
			return 0, false
		}
		if typ == wire.TypeOPT && i >= main {
			if opt > 0 || at != off+1 { // a second one, or one of an owner
				return 0, false
			}
			opt = off
		}
		off = end
	}
	return opt, off == len(b)
}
