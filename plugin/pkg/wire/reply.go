package wire

import (
	"encoding/binary"
)

// Section is a section of a message that holds records.
type Section uint8

const (
	Answer Section = iota
	Authority
	Additional
)

// Rec is where a record lies in its message.
type Rec struct {
	Off  uint16  // of its owner
	TTL  uint16  // of its TTL; type and class stand before it, length and RDATA behind
	Type uint16  // its type
	Sec  Section // the section it stands in
}

// state is what a Reply holds.
type state uint8

const (
	empty state = iota
	message
	failure
	dropped
)

// Reply is a reply in the making: a message, or a failure that the server turns
// into an error reply, or the decision to stay silent. The zero Reply is ready
// for Reset.
//
// A source calls Begin and adds records, section by section; who stands above may
// then look at the layout and change records; the server calls Finish.
//
// The methods that add records (Addr, Record, SOA, SRV, TXT, Target, ...) take names in wire form, which are written in
// the case in which they come (but see FoldOwners), and TTLs in seconds; the class is IN unless one is given. They
// report false, and add nothing, if the message would become longer than 65535 octets; the reply then gets TC,
// unless the client can do without.
type Reply struct {
	content
	fold     bool // see FoldOwners
	datagram bool // the client takes less than 64 KiB in any case
	anew     bool // records of spare are being written
	names    compressor
	spare    former // what Reorder and tighten work on
}

// content is what a Reply holds, without what it takes to build one.
type content struct {
	buf              []byte // the message; its header is written by Finish
	qend             int    // where the question section ends
	recs             []Rec  // in the message's order
	count            [3]uint16
	plain            int    // the message's length without compression and OPT
	flags            uint16 // AA, TC, RA, AD and rcode, as they go to the header
	extRcode         byte   // the upper bits of the rcode, which stand in the OPT record
	state            state
	tight            bool // names are as short as they can be, and point into records that are Movable, too
	anchored         bool // some do that, see Anchors
	full             bool // see Full
	nonAuthoritative bool // see SetNonAuthoritative

	vouched  any    // see Vouch
	writer   string // the plugin that wrote
	err      error
	returned int    // one more than the rcode that goes with err, 0: see ErrRcode
	options  []byte // EDNS options that plugins want in the reply
	opt      int    // octets of the OPT record of a message that was loaded, counted in plain
	optFlags uint16
}

// Reset empties w and gives it buf to build in, from its begin up to its
// capacity. A longer message is built elsewhere.
func (w *Reply) Reset(buf []byte) {
	w.buf = buf[:0]
	w.recs = w.recs[:0]
	w.options = w.options[:0]
	w.state, w.flags, w.extRcode, w.err, w.writer, w.fold, w.vouched, w.returned = empty, 0, 0, nil, "", false, nil, 0
}

// FoldOwners makes owners that differ from the question's name in case only follow the question,
// as a resolver does that mixes cases to know its replies (draft-vixie-dnsext-dns0x20), until the next Reset.
func (w *Reply) FoldOwners() { w.fold = true }

// FoldsOwners reports whether owners follow the question: who adds records by Relative sees to it.
func (w *Reply) FoldsOwners() bool { return w.fold }

// Begin starts a message that answers q: rcode 0, no flags, q's question.
// What w held before is gone, but for its options.
func (w *Reply) Begin(q *Query) {
	w.begin(q.Name(), q.qtype, q.qclass)
	w.datagram = !q.Stream()
}

func (w *Reply) begin(name []byte, qtype, qclass uint16) {
	var header [HeaderLen]byte
	w.buf = append(w.buf[:0], header[:]...)
	w.buf = append(w.buf, name...)
	w.buf = binary.BigEndian.AppendUint16(w.buf, qtype)
	w.buf = binary.BigEndian.AppendUint16(w.buf, qclass)
	w.qend = len(w.buf)
	w.plain = w.qend
	w.recs = w.recs[:0]
	w.count = [3]uint16{}
	w.state, w.flags, w.extRcode, w.err, w.tight, w.anchored, w.nonAuthoritative = message, 0, 0, nil, false, false, false
	w.opt, w.optFlags, w.vouched, w.full, w.datagram = 0, 0, nil, false, false
	w.names.reset()
}

// qname is the question's name as it stands in the message.
func (w *Reply) qname() []byte { return w.buf[HeaderLen : w.qend-4] }

// SetNonAuthoritative notes that a cache is not to give the message AA, as it does to others: it is a resolver's, who
// has asked the zone's servers himself, or the server's own word about a failure, or a rule says so.
func (w *Reply) SetNonAuthoritative(on bool) { w.nonAuthoritative = on }

// Resolved reports whether it is.
func (w *Reply) NonAuthoritative() bool { return w.nonAuthoritative }

// Vouch notes that all which the message says follows from what by has found to be true, and from nothing else. That
// holds until the message changes: its records, their TTLs, the return code. Nil is nobody.
func (w *Reply) Vouch(by any) { w.vouched = by }

// Vouched is who was named by Vouch, nil if nobody was, or the message has changed since.
func (w *Reply) Vouched() any { return w.vouched }

// Fail decides that the server shall write an error reply with rcode, and err,
// if any, be logged by the errors plugin: the twin of what ServeDNS returns.
func (w *Reply) Fail(rcode int, err error) {
	w.state, w.flags, w.extRcode, w.err, w.vouched = failure, uint16(rcode), 0, err, nil
}

// Drop decides that the query gets no reply.
func (w *Reply) Drop() { w.state, w.flags, w.extRcode, w.err, w.vouched = dropped, 0, 0, nil, nil }

// Holds reports whether w holds a message; Failed, a failure; Dropped, a drop.
func (w *Reply) Holds() bool   { return w.state == message }
func (w *Reply) Failed() bool  { return w.state == failure }
func (w *Reply) Dropped() bool { return w.state == dropped }

// Err is the error of Fail, or of SetErr.
func (w *Reply) Err() error { return w.err }

// SetErr adds an error for the errors plugin to a reply that is written all the same.
func (w *Reply) SetErr(err error) { w.err = err }

// SetErrAs is SetErr where ServeDNS returns rcode with err, whatever the reply's is.
func (w *Reply) SetErrAs(rcode int, err error) { w.err, w.returned = err, rcode+1 }

// ErrRcode is the rcode that goes with Err. It reports false if that is the reply's.
func (w *Reply) ErrRcode() (rcode int, ok bool) { return w.returned - 1, w.returned > 0 && !w.Failed() }

// Rcode is the return code.
func (w *Reply) Rcode() int { return int(w.extRcode)<<4 | int(w.flags&rcodeMask) }

// SetRcode sets the return code. The upper bits of one beyond 15 go to the OPT record, and get lost if the client
// gets none.
func (w *Reply) SetRcode(rcode int) {
	w.flags = w.flags&^rcodeMask | uint16(rcode)&rcodeMask
	w.extRcode, w.vouched = byte(rcode>>4), nil
}

// Flag reports header bits of the reply: FlagAA, FlagTC, FlagRA, FlagAD.
func (w *Reply) Flag(bit uint16) bool { return w.flags&bit != 0 }

// SetFlag sets or clears one of them.
func (w *Reply) SetFlag(bit uint16, on bool) {
	if w.flags &^= bit; on {
		w.flags |= bit
	}
}

// Writer is the name of the plugin that wrote the reply, "" if none did.
func (w *Reply) Writer() string { return w.writer }

// SetWriter sets it.
func (w *Reply) SetWriter(name string) { w.writer = name }

// AddOption puts an EDNS option into the reply, if the client gets an OPT record at all.
func (w *Reply) AddOption(code uint16, data []byte) { w.options = AppendOption(w.options, code, data) }

// AddEDE adds an extended error (RFC 8914 §2).
func (w *Reply) AddEDE(code uint16, text string) { w.options = AppendEDE(w.options, code, text) }

// Count is the number of records in a section.
func (w *Reply) Count(s Section) int { return int(w.count[s]) }

// Recs is the layout: all records in their order. It is only to be read, and
// only until the next change.
func (w *Reply) Recs() []Rec { return w.recs }

// Section is the part of the layout that is section s.
func (w *Reply) Section(s Section) []Rec {
	from := 0
	for i := Answer; i < s; i++ {
		from += int(w.count[i])
	}
	return w.recs[from : from+int(w.count[s])]
}

// Bytes is the message as far as it is built; records' offsets point into it.
// The header is not yet written.
func (w *Reply) Bytes() []byte { return w.buf }

// AppendOwner appends the owner of record i, as it is written and in full.
func (w *Reply) AppendOwner(b []byte, i int) []byte {
	b, _ = AppendNameAt(b, w.buf, int(w.recs[i].Off))
	return b
}

// RData is the RDATA of record i of the layout; names in it may be compressed.
func (w *Reply) RData(i int) []byte { return w.buf[int(w.recs[i].TTL)+6 : w.end(i)] }

// end is where record i ends.
func (w *Reply) end(i int) int {
	if i+1 < len(w.recs) {
		return int(w.recs[i+1].Off)
	}
	return len(w.buf)
}

// PlainLen is the length that the message would have without compression and
// without an OPT record, in octets. Metrics and log tell it.
func (w *Reply) PlainLen() int { return w.plain }

// TTL is the TTL of record i, in seconds.
func (w *Reply) TTL(i int) uint32 { return binary.BigEndian.Uint32(w.buf[w.recs[i].TTL:]) }

// SetTTL sets it.
func (w *Reply) SetTTL(i int, ttl uint32) {
	binary.BigEndian.PutUint32(w.buf[w.recs[i].TTL:], ttl)
	w.vouched = nil
}

// SetTTLs sets the TTL of all records.
func (w *Reply) SetTTLs(ttl uint32) {
	for i := range w.recs {
		binary.BigEndian.PutUint32(w.buf[w.recs[i].TTL:], ttl)
	}
	w.vouched = nil
}

// Truncate cuts the message off behind its first n records.
func (w *Reply) Truncate(n int) {
	for _, r := range w.recs[n:] {
		w.count[r.Sec]--
	}
	w.buf = w.buf[:w.end(n-1)]
	w.recs, w.full, w.vouched = w.recs[:n], false, nil
}

// KeepAnswer leaves out what is not in the answer section. PlainLen does not count it any more.
func (w *Reply) KeepAnswer() {
	n := w.Count(Answer)
	if n == len(w.recs) {
		return
	}
	var room [MaxName + 1]byte
	for i, r := range w.recs[n:] {
		owner, _ := AppendNameAt(room[:0], w.buf, int(r.Off))
		w.spare.rdata = appendRData(w.spare.rdata[:0], w.buf, r.Type, int(r.TTL)+6, w.end(n+i))
		w.plain -= len(owner) + 10 + len(w.spare.rdata)
	}
	w.Truncate(n)
	w.names.reset() // some stood there
}
