// Package readahead has the processor fetch memory that is going to be looked at. What is in none of its caches
// takes as long to come as half of an answer does to make.
//
// Who serves a batch of queries tells a Table of those that come next, while it serves others:
//
//	query n+2   ReadAhead, step 0: where its search begins
//	query n+1   ReadAhead, step 1: what the search has led to, as that is there now
//	query n     served
//
// Start at Table.
package readahead

import (
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Table is a plugin of the wire lane that looks up queries in memory of its own.
type Table interface {
	// Large reports whether that memory is more than fits into the processor's caches; else reading ahead costs more
	// than it saves. It is asked every few hundred queries.
	Large() bool
	// ReadAhead has the processor fetch what ServeWire is likely to look at in a step, counted from 0, of looking up q.
	// It is called for most queries of a batch, before ServeWire. It has no effect but that, and q is not kept; whose q
	// is, and when it came, is not known yet.
	ReadAhead(q *wire.Query, step int)
}

// Steps is how many steps a Table is called for.
const Steps = 2

// LargeSize is the octets from which on a table is large: what a core has of caches for itself, more or less.
const LargeSize = 2 << 20

// lineSize is the octets that the processor fetches at once, on most.
const lineSize = 64

// Line has the processor fetch the line of memory that p points into. It does not wait for that.
func Line(p unsafe.Pointer) {
	if Works {
		line(p)
	}
}

// Bytes is Line for all of b.
func Bytes(b []byte) {
	for ; len(b) > lineSize; b = b[lineSize:] {
		Line(unsafe.Pointer(&b[0]))
	}
	if len(b) > 0 {
		Line(unsafe.Pointer(&b[len(b)-1]))
	}
}
