package dnsserver

import (
	"cmp"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/udp"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Defaults of everything that is limited, in one place. What a Config sets goes before them.
//
// Where CoreDNS 1.14.7 has a limit, ours is the same: the times, and the connections and streams of HTTP, QUIC and
// gRPC. The others are far beyond what honest clients do; each says how it was chosen.
const (
	DefaultReadTimeout  = 3 * time.Second  // until the first query of a connection; for all of an HTTP request
	DefaultIdleTimeout  = 10 * time.Second // until each further query of a connection
	DefaultWriteTimeout = 5 * time.Second  // to write a reply
	DefaultGraceTime    = 5 * time.Second  // for queries in flight when a server is stopped
	DefaultTCPQueries   = -1               // queries of one connection; -1 is any number

	// DefaultHandshakeTimeout is for all of a TLS or QUIC handshake: as long as for the first query. Over TCP it is as
	// long as that also where blocks set another time for it.
	DefaultHandshakeTimeout = 3 * time.Second

	DefaultHTTPSMaxConnections = 200
	// DefaultHTTPSMaxStreams is what net/http allows.
	DefaultHTTPSMaxStreams = 250
	// DefaultHTTPSMaxHeaderBytes has room for the longest query in the URL of a GET request, 87,384 octets.
	DefaultHTTPSMaxHeaderBytes = 96 << 10

	DefaultHTTPS3MaxHeaderBytes = 16 << 10
	DefaultHTTPS3MaxStreams     = 256
	DefaultHTTPS3MaxConnections = 200

	DefaultMaxQUICStreams     = 256
	DefaultQUICMaxConnections = 200
	DefaultQUICStreamWorkers  = 1024

	DefaultGRPCMaxStreams     = 256
	DefaultGRPCMaxConnections = 200
	// DefaultGRPCMaxHeaderBytes is what HTTP/3 has; gRPC libraries have the same need.
	DefaultGRPCMaxHeaderBytes = 16 << 10

	// DefaultStreamQueries is how many queries of one TCP or TLS connection are worked on at once; the next ones
	// are not read before one of these is answered, so none is lost. Resolvers keep a few tens in flight on a
	// connection.
	DefaultStreamQueries = 64

	// The open connections of one TCP or TLS listener; see package memory.
	MinStreamConnections = memory.MinConnections
	MaxStreamConnections = memory.MaxConnections
	MemoryPerConnection  = memory.PerConnection
	FilesPerConnection   = memory.FilesPerConnection

	// Of a listener's TCP or TLS connections, one client may have this part: so many that a whole office behind one
	// address does not notice, and so few that there is room for another. The listeners of HTTP, QUIC and gRPC have
	// no such limit by default, as proxies bring many clients on connections of one address.
	ClientShare = 2
	// A client is an IPv4 address, or an IPv6 network of the length that one customer is given (RFC 6177).
	DefaultClientBits4 = 32
	DefaultClientBits6 = 56

	// DefaultUnreadBytes is the octets of replies that wait for the client of one TCP, TLS or HTTP/2 connection to
	// take them, before no more of its queries are read: some 15 of the longest messages, or 10,000 usual ones.
	DefaultUnreadBytes = 1 << 20

	// MaxUDPQuery is the longest query that is read over UDP, in octets.
	MaxUDPQuery = udp.MaxQuery

	// The queries that wait at one time, for an upstream or in a plugin that may wait; see package memory.
	MinWaiting      = memory.MinWaiting
	MaxWaiting      = memory.MaxWaiting
	MemoryPerWaiter = memory.PerWaiter

	// The octets of replies that wait for all clients of the process. Beyond, connections whose clients do not read
	// are closed.
	InFlightShare    = memory.UnsentShare
	MinInFlightBytes = memory.MinUnsent
	MaxInFlightBytes = memory.MaxUnsent
)

// Limits are the limits of a server block's listeners that have no field of their own in Config; nil means the
// default, 0 none. If blocks that share a listener set different ones, the first in the Corefile counts.
type Limits struct {
	Connections       *int           // open connections of the listener
	ClientConnections *int           // of these, from one client
	ClientBits4       *int           // the length of the prefix that makes a client, for IPv4
	ClientBits6       *int           // and for IPv6
	Streams           *int           // streams of a connection of HTTP/2, HTTP/3, QUIC or gRPC at one time
	Pipeline          *int           // queries of a connection of TCP or TLS that are worked on at one time
	QueryBytes        *int           // length of a query that does not come over UDP
	HeaderBytes       *int           // length of the headers of an HTTP request
	UnreadBytes       *int           // replies of a connection that the client has not taken
	Handshake         *time.Duration // for all of a TLS or QUIC handshake

	// Limits of the process: what the first block says that says anything.
	Waiting       *int // queries that wait at one time
	InFlightBytes *int // replies that clients have not taken
}

// limits are the limits of one listener as they are in force, and those of the process; 0 is none.
type limits struct {
	service.Limits
	waiting, inFlightBytes int // of the process
}

// limitsOf finds out the limits of a listener with the scheme trans.
func limitsOf(trans string, group []*Config) limits {
	get := func(own func(*Config) *int, common func(*Limits) *int, def int) int {
		if own != nil {
			if p := firstSet(group, own); p != nil {
				return *p
			}
		}
		return orDefault(firstSet(group, func(c *Config) *int { return common(&c.Limits) }), def)
	}
	connections := func(own func(*Config) *int, def int) int {
		return get(own, func(l *Limits) *int { return l.Connections }, def)
	}
	var l limits
	streams := func(own func(*Config) *int, def int) int {
		const unset = -1
		n := get(own, func(l *Limits) *int { return l.Streams }, unset)
		if l.StreamsSet = n != unset; !l.StreamsSet {
			n = def
		}
		return n
	}
	headers := DefaultHTTPSMaxHeaderBytes
	switch trans {
	case transport.HTTPS:
		l.Connections = connections(func(c *Config) *int { return c.MaxHTTPSConnections }, DefaultHTTPSMaxConnections)
		l.Streams = streams(nil, DefaultHTTPSMaxStreams)
	case transport.HTTPS3:
		l.Connections = connections(func(c *Config) *int { return c.MaxHTTPS3Connections }, DefaultHTTPS3MaxConnections)
		l.Streams = streams(func(c *Config) *int { return c.MaxHTTPS3Streams }, DefaultHTTPS3MaxStreams)
		headers = DefaultHTTPS3MaxHeaderBytes
	case transport.QUIC:
		l.Connections = connections(func(c *Config) *int { return c.MaxQUICConnections }, DefaultQUICMaxConnections)
		l.Streams = streams(func(c *Config) *int { return c.MaxQUICStreams }, DefaultMaxQUICStreams)
	case transport.GRPC:
		headers = DefaultGRPCMaxHeaderBytes
		l.Connections = connections(func(c *Config) *int { return c.MaxGRPCConnections }, DefaultGRPCMaxConnections)
		l.Streams = streams(func(c *Config) *int { return c.MaxGRPCStreams }, DefaultGRPCMaxStreams)
	default:
		l.Connections = connections(nil, memory.Connections(memory.Limit(), memory.Files()))
		l.Client = l.Connections / ClientShare
	}
	l.Client = get(nil, func(l *Limits) *int { return l.ClientConnections }, l.Client)
	l.Bits4 = get(nil, func(l *Limits) *int { return l.ClientBits4 }, DefaultClientBits4)
	l.Bits6 = get(nil, func(l *Limits) *int { return l.ClientBits6 }, DefaultClientBits6)
	l.Pipeline = get(nil, func(l *Limits) *int { return l.Pipeline }, DefaultStreamQueries)
	l.QueryBytes = get(nil, func(l *Limits) *int { return l.QueryBytes }, wire.MaxMessage)
	l.HeaderBytes = get(nil, func(l *Limits) *int { return l.HeaderBytes }, headers)
	l.Unread = get(nil, func(l *Limits) *int { return l.UnreadBytes }, DefaultUnreadBytes)
	l.Handshake = orDefault(firstSet(group, func(c *Config) *time.Duration { return c.Limits.Handshake }), handshakeTime(trans, group))
	l.waiting = get(nil, func(l *Limits) *int { return l.Waiting }, memory.Waiting(memory.Limit()))
	l.inFlightBytes = get(nil, func(l *Limits) *int { return l.InFlightBytes }, memory.Unsent(memory.Limit()))
	return l
}

// handshakeTime is how long a handshake may take if no block limits it. Who gives the clients of a TCP listener another
// time for their first query means this part of it, too.
func handshakeTime(trans string, group []*Config) time.Duration {
	t := DefaultHandshakeTimeout
	if trans == transport.QUIC || trans == transport.HTTPS3 {
		return t
	}
	for _, cfg := range group {
		t = cmp.Or(cfg.ReadTimeout, t)
	}
	return t
}

// enforce makes the limits of the process those that a server which begins to serve was made with.
func (l *limits) enforce() {
	exec.SetWaiting(l.waiting)
	unsent.SetMax(l.inFlightBytes)
}

// orDefault is the value that p points to, def if it points to none.
func orDefault[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// firstSet is the first limit that a block of the group sets, nil if none does. It warns
// of blocks that set another one.
func firstSet[T comparable](group []*Config, get func(*Config) *T) (first *T) {
	for _, cfg := range group {
		p := get(cfg)
		switch {
		case p == nil:
		case first == nil:
			first = p
		case *first != *p:
			log.Warningf("Server blocks set different limits for what they share, %v and %v: using %v", *first, *p, *first)
		}
	}
	return first
}
