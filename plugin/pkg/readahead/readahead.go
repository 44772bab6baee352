// Package readahead has the processor fetch memory that is going to be looked at. What is in none of its caches
// takes as long to come as half of an answer does to make.
//
// Who serves a batch of queries tells a Table of those that come next, while it serves others. With many zones:
//
//	left 5   where the search for the zone begins
//	left 4   the zone that this has led to
//	left 3   its present version
//	left 2   where the search for the name begins
//	left 1   what that has led to
//	left 0   the query is served
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
	// ReadAhead has the processor fetch what ServeWire is likely to look at. It is called for most queries of a batch,
	// when so many others are left to be served before q, from First down to 1. By then what was fetched last is there.
	// found is what ReadAhead returned for q the last time, nil at first. It has no effect but that, and q is not kept;
	// whose q is, and when it came, is not known yet.
	ReadAhead(q *wire.Query, left int, found any) any
}

// First is how many others are left when a Table is told of a query.
const First = 5

// MostTables is how many tables are told of a query: they are told of it whichever block it is for.
const MostTables = 4

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
