// Package service is what a transport may know of the server that it works for.
//
//	porch ──makes──▶ Service ◀──sits in── Seat ◀── transport
//	                   │ Decider: the chain of plugins
//	                   │ Limits, times, label
//	                   └ Inflight: its queries on transports that the next Service may take over
//
// A Service does not change, but for its counts; any number of goroutines may use it. In a reload another one sits
// down in the Seat of a transport, which goes on with its connections. Start at Service; then Seat.
package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Decider decides what the reply to a query is. The chain of plugins implements it.
type Decider interface {
	// ServeWire decides q, which was parsed from its packet. If the outcome is Done, reply is what goes to the
	// client, nil for nothing; it lies in w's buffer. Other outcomes leave no trace.
	ServeWire(w *wire.Reply, q *wire.Query) (reply []byte, out wire.Outcome)
	// ServeDNS decides r and writes replies to w.
	ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg)
	// LargeTables appends the tables that queries of the wire lane are looked up in, if they are large now:
	// readahead.MostTables of them at most.
	LargeTables(to []readahead.Table) []readahead.Table
}

// Service is a server as its transports see it.
type Service struct {
	Decider
	// Label is the address with its scheme, dns://:53: the label server of metrics.
	Label string
	// Wire says that queries may take the wire lane.
	Wire bool
	// Opcodes are those that a block takes beside QUERY and NOTIFY: bit n is opcode n.
	Opcodes uint16
	// Debug says that panics are to be seen.
	Debug bool
	Limits
	// Read, Write and Idle are the times of connections: until the first query, to write a reply, until each
	// further query.
	Read, Write, Idle time.Duration
	// Queries is how many a connection may send, -1 any number.
	Queries int
	// Finish ends replies.
	Finish *reply.Finisher
	// Proto is what the transport's protocol wants to know beside, of a type of its own.
	Proto any

	// Inflight counts the queries that have begun with this Service on transports that another one may take over.
	Inflight Inflight
	// Leaving says that nobody goes on with the sockets, and others may listen at the same addresses: other processes
	// when this one ends, or in a reload those of other listeners.
	Leaving atomic.Bool
}

// Limits are the limits of one listener as they are in force; 0 is none.
type Limits struct {
	Connections, Client int  // open connections; of these, of one client
	Bits4, Bits6        int  // the length of the prefix that makes a client
	Streams, Pipeline   int  // at one time: streams of a connection, queries of a connection of TCP or TLS
	StreamsSet          bool // Streams is what was asked for; else memory may allow fewer of HTTP/3 and QUIC
	QueryBytes          int  // of a query that does not come over UDP
	HeaderBytes         int  // of an HTTP request
	Unread              int  // octets of replies of a connection that the client has not taken
	Handshake           time.Duration
}

// DrainTime is how long a transport that is being stopped waits for what may be on its way.
const DrainTime = 50 * time.Millisecond

// ErrLong says that a query is longer than Limits.QueryBytes.
var ErrLong = errors.New("query is longer than the limit")

// TooLong reports whether a query of n octets, which did not come over UDP, is longer than the limit.
func (l *Limits) TooLong(n int) bool { return l.QueryBytes > 0 && n > l.QueryBytes }

// started is the begin of the clock of Now.
var started = time.Now()

// Now is the time on a clock that all transports of the process have in common, in nanoseconds.
func Now() int64 { return int64(time.Since(started)) }

// At is t on that clock.
func At(t time.Time) int64 { return int64(t.Sub(started)) }
