package dnsserver

import (
	"net"
	"sync/atomic"
	"time"
)

// gatherConn is the lower end of a connection. Before it waits for the client it tells, so that replies to all that
// has come go out in one piece, and what waits is given its time.
type gatherConn struct {
	net.Conn
	owner    *endpoint
	idle     func()        // called before a Read that may wait
	deadline time.Duration // for the next Read that may wait, from its begin; 0 leaves the deadline as it is
	closed   func()        // called at each Close, if not nil

	buf  []byte // read ahead, for who reads in small pieces; may be nil
	r, w int
}

func (g *gatherConn) Read(p []byte) (int, error) {
	if g.r == g.w {
		g.idle()
		if g.deadline != 0 {
			g.owner.setReadDeadline(g.deadline)
			g.deadline = 0
		}
		if len(p) >= len(g.buf) {
			return g.Conn.Read(p)
		}
		n, err := g.Conn.Read(g.buf)
		g.r, g.w = 0, n
		if n == 0 {
			return 0, err
		}
	}
	n := copy(p, g.buf[g.r:g.w])
	g.r += n
	return n, nil
}

// Close closes the connection.
func (g *gatherConn) Close() error {
	if g.closed != nil {
		g.closed()
	}
	return g.Conn.Close()
}

// CloseWrite closes the connection's half that we write to, where that can be done.
func (g *gatherConn) CloseWrite() error {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// ledger counts the bytes that wait for clients, in all connections of the process.
type ledger struct{ n, max atomic.Int64 } // max 0 is any number

// inFlight is the ledger of the process.
var inFlight = func() *ledger {
	l := new(ledger)
	l.max.Store(MaxInFlightBytes)
	return l
}()

// take enters n bytes, unless they are too many.
func (l *ledger) take(n int) bool {
	if most := l.max.Load(); l.n.Add(int64(n)) > most && most > 0 && n > 0 {
		l.n.Add(int64(-n))
		return false
	}
	return true
}

func (l *ledger) give(n int) { l.n.Add(int64(-n)) }
