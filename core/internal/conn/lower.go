package conn

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/nonblock"
)

// lowerConn is the lower end of a connection. Before it waits for the client it tells, so that replies to all that
// has come go out in one piece, and what waits is given its time.
type lowerConn struct {
	net.Conn
	owner    *Conn
	deadline time.Duration // for the next Read that may wait, from its begin; 0 leaves the deadline as it is
	closed   func()        // called at each Close, if not nil
	acks     bool          // until more comes, or behind a handshake; see Conn.QuickAck

	ahead bool             // is read, for who reads in small pieces
	buf   *[readSpace]byte // what was read ahead; nil if it is nothing
	r, w  int

	holds atomic.Bool // what is written is held, to be sent with what is written next; see Writer.writePiece
	held  []byte      // guarded by the lock that TLS writes under
}

func (l *lowerConn) Read(p []byte) (int, error) {
	if l.r == l.w {
		if l.owner.protocol != nil {
			l.owner.protocol.BeforeWait()
		}
		if l.deadline != 0 {
			l.owner.setReadDeadline(l.deadline)
			l.deadline = 0
		}
		if !l.ahead || len(p) >= readSpace {
			n, err := l.Conn.Read(p)
			l.came(n)
			return n, err
		}
		if l.buf == nil {
			l.buf = readBuffers.Get().(*[readSpace]byte)
		}
		n, err := l.Conn.Read(l.buf[:])
		l.r, l.w = 0, n
		l.came(n)
		if n == 0 {
			return 0, err
		}
	}
	n := copy(p, l.buf[l.r:l.w])
	l.r += n
	return n, nil
}

// came notes that n octets came. It tells the owner when that is within a handshake.
func (l *lowerConn) came(n int) {
	if n == 0 {
		return
	}
	shaking := l.owner.shaking.Load()
	if l.acks && shaking == shaken {
		l.quickAck(false)
	}
	if shaking == awaited {
		l.owner.heard()
	}
}

// quickAck says whether what has come is acknowledged before a Read waits.
func (l *lowerConn) quickAck(on bool) {
	l.acks = on
	nonblock.QuickAck(l.Conn, on)
}

func (l *lowerConn) Write(p []byte) (int, error) {
	holds := l.holds.Load()
	if !holds && len(l.held) == 0 {
		return l.Conn.Write(p)
	}
	l.held = append(l.held, p...)
	if holds && len(l.held) < readSpace {
		return len(p), nil
	}
	_, err := l.Conn.Write(l.held)
	l.held = l.held[:0]
	return len(p), err
}

// Close closes the connection.
func (l *lowerConn) Close() error {
	if l.closed != nil {
		l.closed()
	}
	return l.Conn.Close()
}

// CloseWrite closes the connection's half that we write to, where that can be done.
func (l *lowerConn) CloseWrite() error {
	if c, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
