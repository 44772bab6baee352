package dnsserver

import "time"

// Defaults of everything that is limited, in one place. Settings of a Config go before them.
const (
	DefaultReadTimeout  = 3 * time.Second  // until the first query of a connection, or all of a DoQ stream's query
	DefaultIdleTimeout  = 10 * time.Second // until each further query of a connection
	DefaultWriteTimeout = 5 * time.Second  // to write a reply
	DefaultGraceTime    = 5 * time.Second  // for queries in flight when a server is stopped
	DefaultTCPQueries   = -1               // queries of one connection; -1 is any number

	DefaultHTTPSMaxConnections = 200

	DefaultHTTPS3MaxHeaderBytes = 16 << 10
	DefaultHTTPS3MaxStreams     = 256
	DefaultHTTPS3MaxConnections = 200

	DefaultMaxQUICStreams     = 256
	DefaultQUICMaxConnections = 200
	DefaultQUICStreamWorkers  = 1024

	DefaultGRPCMaxStreams     = 256
	DefaultGRPCMaxConnections = 200

	// DefaultStreamQueries is how many queries of one TCP or TLS connection are worked on at once; the
	// next ones are not read before one of these is answered.
	DefaultStreamQueries = 64

	// MaxStreamConnections is the open connections of one TCP or TLS listener; more wait in its backlog.
	MaxStreamConnections = 16384

	// MaxUDPQuery is the longest query that is read over UDP, in octets.
	MaxUDPQuery = 65535

	// The queries that wait at one time, for an upstream or in a plugin that may wait: one for each 32 KiB of
	// memory that the process may use, within these bounds.
	MinWaiting      = 1024
	MaxWaiting      = 65536
	MemoryPerWaiter = 32 << 10
)

// orDefault is the value that p points to, def if it points to none.
func orDefault(p *int, def int) int {
	if p == nil {
		return def
	}
	return *p
}
