package quicconn

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/memory"
)

// A long query comes in many packets, and is kept until its last octet is there. A stream may have 64 KiB of one, and
// there may be a few thousand streams: so where memory has a limit, a part of it is for them.
const (
	// littleQuery is the octets of a query that may come whatever others have: nearly all have fewer.
	littleQuery = 4 << 10

	// IncomingShare is which part of the memory is for the others.
	IncomingShare = 16
)

// incoming is the octets of long queries of the process that are not there as a whole.
var incoming atomic.Int64

// ErrMany says that too many octets of long queries have come whose ends have not.
var ErrMany = errors.New("too many long queries are on their way")

// mostIncoming is how many octets there may be with so many bytes of memory.
func mostIncoming() int64 { return memory.Limit() / IncomingShare }

// Incoming reads a query from a stream. Whoever reads it calls Done.
type Incoming struct {
	from       io.Reader
	n, counted int64
}

// NewIncoming reads from a stream.
func NewIncoming(from io.Reader) *Incoming { return &Incoming{from: from} }

// Read implements io.Reader. The error is ErrMany if the query is long, and too much of such has come.
func (i *Incoming) Read(b []byte) (int, error) {
	n, err := i.from.Read(b)
	if i.n += int64(n); i.n <= littleQuery || i.n == i.counted {
		return n, err
	}
	more := i.n - i.counted
	if incoming.Add(more) > mostIncoming() {
		incoming.Add(-more)
		return n, ErrMany
	}
	i.counted = i.n
	return n, err
}

// Done says that the query has been read, or is not wanted any more.
func (i *Incoming) Done() {
	incoming.Add(-i.counted)
	i.counted = 0
}
