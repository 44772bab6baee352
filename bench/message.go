package main

import (
	"encoding/binary"
	"strings"
)

// RR types the workloads ask for.
const (
	typeA    = 1
	typeMX   = 15
	typeTXT  = 16
	typeAAAA = 28
	typeOPT  = 41
)

// headerLen is the length of the header of a message (RFC 1035 §4.1.1).
const headerLen = 12

const (
	rcodeNoError  = 0
	rcodeNXDomain = 3
)

// flagAD is a bit of the fourth octet of a header (RFC 4035 §3.1.6).
const flagAD = 0x20

// outcome is what a query of a workload is to be answered with.
type outcome uint8

const (
	answer   outcome = iota // NOERROR with at least one record
	noData                  // NOERROR without one
	nxDomain                // NXDOMAIN
	secure                  // answer with AD (RFC 4035 §3.2.3)
	failure                 // anything else; no query expects it
)

// reply is what a client looks at in a response.
type reply struct {
	id      uint16
	rcode   uint8
	outcome outcome
}

// appendQuery appends a query with the id 0 and RD set. name is in presentation form
// without escapes, with or without its final dot.
func appendQuery(b []byte, name string, qtype uint16) []byte {
	b = append(b, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	b = appendName(b, name)
	return append(b, byte(qtype>>8), byte(qtype), 0, 1)
}

// appendName appends name in wire form, uncompressed.
func appendName(b []byte, name string) []byte {
	for label := range strings.SplitSeq(strings.Trim(name, "."), ".") {
		if label == "" {
			continue
		}
		b = append(b, byte(len(label)))
		b = append(b, label...)
	}
	return append(b, 0)
}

// readReply reads a response. ok is false if msg is too short or no response.
func readReply(msg []byte) (r reply, ok bool) {
	if len(msg) < headerLen || msg[2]&0x80 == 0 {
		return reply{}, false
	}
	r = reply{id: binary.BigEndian.Uint16(msg), rcode: msg[3] & 0x0f, outcome: failure}
	truncated := msg[2]&0x02 != 0
	answers := binary.BigEndian.Uint16(msg[6:])
	switch {
	case truncated:
	case r.rcode == rcodeNXDomain:
		r.outcome = nxDomain
	case r.rcode == rcodeNoError && answers > 0 && msg[3]&flagAD != 0:
		r.outcome = secure
	case r.rcode == rcodeNoError && answers > 0:
		r.outcome = answer
	case r.rcode == rcodeNoError:
		r.outcome = noData
	}
	return r, true
}

// questionEnd returns the offset behind the only question of msg, or 0 if there is none.
func questionEnd(msg []byte) int {
	if len(msg) < headerLen || binary.BigEndian.Uint16(msg[4:]) != 1 {
		return 0
	}
	off := headerLen
	for off < len(msg) && msg[off] != 0 {
		if msg[off] > 63 {
			return 0
		}
		off += 1 + int(msg[off])
	}
	if off+5 > len(msg) {
		return 0
	}
	return off + 5
}
