// Package wiretest makes messages for tests: replies that cost who reads them as much as octets can, and ordinary ones
// of the same size to compare with. Each is a reply to the question for its name, as long as a message may be or nearly
// so.
//
//	Hostile() ──▶ {Name, Question, Message} ──▶ whatever reads messages ──▶ Cost ──▶ compared with Ordinary's
//
// Start at Hostile.
package wiretest

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Reply is one message from an upstream.
type Reply struct {
	Name    string // of the case
	Owner   []byte // the question's name in wire form; its type is A, its class IN
	Message []byte // with id 0
}

// Query is the packet of the question that r is the reply to.
func (r *Reply) Query() []byte {
	b := make([]byte, wire.HeaderLen, 300)
	b[2], b[5] = wire.FlagRD>>8, 1
	return append(append(b, r.Owner...), 0, wire.TypeA, 0, wire.ClassIN)
}

// maker writes a message: header, question, and records section by section.
type maker struct {
	b     []byte
	owner []byte
}

// begin is a message that has the question for a name.
func begin(owner []byte) *maker {
	m := &maker{owner: owner, b: make([]byte, wire.HeaderLen, wire.MaxMessage)}
	binary.BigEndian.PutUint16(m.b[2:], wire.FlagQR|wire.FlagRD|wire.FlagRA)
	m.b[5] = 1
	m.b = append(append(m.b, owner...), 0, wire.TypeA, 0, wire.ClassIN)
	return m
}

// count notes one record more in a section.
func (m *maker) count(s wire.Section) {
	at := 6 + 2*int(s)
	binary.BigEndian.PutUint16(m.b[at:], binary.BigEndian.Uint16(m.b[at:])+1)
}

// record adds a record whose owner and RDATA are octets. It reports false, and adds nothing, if there is no room for
// it.
func (m *maker) record(s wire.Section, owner []byte, typ uint16, rdata []byte) bool {
	if len(m.b)+len(owner)+10+len(rdata) > wire.MaxMessage {
		return false
	}
	m.count(s)
	m.b = append(append(m.b, owner...), byte(typ>>8), byte(typ), 0, wire.ClassIN, 0, 0, 1, 44, byte(len(rdata)>>8), byte(len(rdata)))
	m.b = append(m.b, rdata...)
	return true
}

// fill adds the record that next makes until the message is full. next may return nil RDATA to end.
func (m *maker) fill(s wire.Section, typ uint16, next func(i int) (owner, rdata []byte)) *maker {
	for i := 0; ; i++ {
		owner, rdata := next(i)
		if owner == nil || !m.record(s, owner, typ, rdata) {
			return m
		}
	}
}

// reply is what has been made, under the name of its case.
func (m *maker) reply(name string) Reply { return Reply{Name: name, Owner: m.owner, Message: m.b} }

// pointer is a pointer to an offset.
func pointer(off int) []byte { return []byte{0xC0 | byte(off>>8), byte(off)} }

// question is a pointer to the question's name.
var question = pointer(wire.HeaderLen)

// labels is n labels of one octet, without the root.
func labels(n int) (b []byte) {
	for range n {
		b = append(b, 1, 'a')
	}
	return b
}

// number is a label that tells i apart from all others.
func number(i int) []byte {
	const digits = "abcdefghijklmnopqrstuvwxyz012345"
	return []byte{3, digits[i>>10&31], digits[i>>5&31], digits[i&31]}
}

// example is the question of those that are not about names.
var example = wire.MustName("www.example.org.")

// longest is a name of 127 labels.
var longest = append(labels(127), 0)
