package replies

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Facts is what a reply says of itself, for who decides what becomes of it.
type Facts struct {
	// Rcode has the upper bits of the OPT record (RFC 6891 §6.1.3), so it is up to 4095.
	Rcode int
	// Answers is how many records the answer section has.
	Answers int
	// TC says that it was truncated (RFC 1035 §4.1.1).
	TC bool
	// OPT is where its OPT record begins, in octets from the message's begin; 0 if it has none.
	OPT int32
}

// Verdict is what octets that came from an upstream are.
type Verdict uint8

const (
	// Proper is a reply that can be unpacked, whatever it answers.
	Proper Verdict = iota
	// CutShort is proper up to its question, and then ends too early: it only makes its client ask over TCP.
	CutShort
	// Bare is an error without a question; see BareError.
	Bare
	// TooShort has no header, or none with one question.
	TooShort
	// NotReply does not have the bit QR set.
	NotReply
	// OtherID has an id that nobody waits for.
	OtherID
	// OtherQuestion has not the question that was asked.
	OtherQuestion
	// Malformed cannot be unpacked, or is not worth the effort.
	Malformed
	// OtherCookie is not from who was shown a cookie (RFC 7873 §5.3).
	OtherCookie
	// OtherCase has other letters in its name than were sent; see Flips.
	OtherCase
	// OtherAddress is from somebody else than the server that was asked.
	OtherAddress
	// Verdicts is how many there are.
	Verdicts
)

// String is the verdict's word in metrics: the label of what was ignored.
func (v Verdict) String() string {
	return [Verdicts]string{"proper", "cut_short", "bare", "too_short", "not_reply", "id", "question", "malformed", "cookie", "case", "address"}[v]
}

// Incoming is a message that came from an upstream, looked at without knowledge of any query. Offsets count octets from
// the message's begin.
type Incoming struct {
	Facts
	// ID is that of the message; the query's is most often another one (Exchange of package proxy).
	ID uint16
	// QuestionEnd is where its question ends; what is not Proper, CutShort or Bare may have none.
	QuestionEnd int
}

// Inspect decides whether b is a reply that can be unpacked, whatever it answers. b is only read.
//
// Messages as nearly all upstreams send them are walked here; whatever else there may be is given to
// github.com/miekg/dns, which has the last word. So what is proper here unpacks there. Messages with names that are not
// worth the effort (wire.Effort) are malformed, whoever sends them: each reader after this one would have to spend it
// again.
func Inspect(b []byte) (in Incoming, v Verdict) {
	if len(b) < wire.HeaderLen+5 || binary.BigEndian.Uint16(b[4:]) != 1 {
		if BareError(b) {
			return bareError(b), Bare
		}
		return in, TooShort
	}
	flags := binary.BigEndian.Uint16(b[2:])
	if flags&wire.FlagQR == 0 {
		return in, NotReply
	}
	n := wire.NameLen(b[wire.HeaderLen:])
	in.QuestionEnd = wire.HeaderLen + n + 4
	if n == 0 || in.QuestionEnd > len(b) {
		return in, TooShort
	}
	in.ID = binary.BigEndian.Uint16(b)
	in.TC = flags&wire.FlagTC != 0
	in.Answers = int(binary.BigEndian.Uint16(b[6:]))
	in.Rcode = int(flags & 0xF)
	if opt, ok := walk(b, in.QuestionEnd); ok {
		if in.OPT = int32(opt); opt > 0 {
			in.Rcode |= int(b[opt+5]) << 4
		}
		return in, Proper
	}
	if !wire.Affordable(b) {
		return in, Malformed
	}
	return in, in.unpack(b)
}

// unpack is the slow way of Inspect.
func (in *Incoming) unpack(b []byte) Verdict {
	var m dns.Msg
	err := wire.UnpackInto(&m, b)
	switch {
	case err == nil && (len(m.Answer) < in.Answers || len(m.Ns) < int(binary.BigEndian.Uint16(b[8:]))):
		return CutShort // at the end of a record, where Unpack takes what there is for all
	case err == nil: // a count of additional records may be that of the query, as some servers have it
		in.Rcode, in.Answers, in.OPT = m.Rcode, len(m.Answer), int32(FindOPT(b))
		return Proper
	case errors.Is(err, dns.ErrBuf), strings.Contains(err.Error(), "overflow"):
		return CutShort
	}
	return Malformed
}

// IsFor reports whether b, which is Proper or CutShort, has the question of query (RFC 5452 §4.2): the same name
// without regard to case, type and class. The id is not looked at: who waits for it is known by that. Names in both
// are without compression, as a question has nothing before it to point at.
func (in *Incoming) IsFor(b, query []byte) bool {
	end := in.QuestionEnd - 4
	return len(query) >= in.QuestionEnd &&
		wire.EqualFold(b[wire.HeaderLen:end], query[wire.HeaderLen:end]) &&
		string(b[end:in.QuestionEnd]) == string(query[end:in.QuestionEnd])
}

// Emptied cuts b, which is CutShort, behind its question and sets TC, so that its client asks over TCP. It changes b,
// and the Facts are then those of what is left: no records, and no OPT record.
func (in *Incoming) Emptied(b []byte) []byte {
	in.TC, in.Answers, in.OPT = true, 0, 0
	b = b[:in.QuestionEnd]
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
