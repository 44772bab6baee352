package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/log"
)

// Handler is what a server has its connections served with.
type Handler struct {
	TLS *tls.Config // nil for none
	New func(c *Conn) Protocol

	// Turn serves what has come on a connection without TLS that has no goroutine, b, as far as that can be done at
	// once. n octets of b are served. The connection goes on without a goroutine if that is all of them, and stays is
	// true. If Turn is nil, all connections have goroutines.
	Turn func(t *Turn, c *Light, b []byte) (n int, stays bool)
	// Resume is New for one that had no goroutine until now. It begins with the query that is left, if there is one.
	Resume func(c *Conn, from *Light) Protocol
}

// Listener serves the connections of one TCP listener, each on a goroutine of its own, or by turns with others; see
// Light. It implements service.Heirloom.
type Listener struct {
	service.Seat
	// Beside is stopped with the connections, before they are waited for; nil if there is nothing.
	Beside    service.Transport
	admission *Admission

	auth ClientAuth // what connections were told when they were accepted

	readers readers // of connections without goroutines

	troubled log.Seldom // lines about errors of accepting

	spare  chan *Conn   // to goroutines that wait for another connection
	spares atomic.Int32 // how many of them there are
	ended  chan struct{}

	stopping  atomic.Bool
	mu        sync.Mutex
	listener  net.Listener
	beforeEnd func()        // called before listener is closed, if not nil
	closed    chan struct{} // closed with listener; nil after that
	conns     map[*Conn]struct{}
	stopped   time.Time      // when it began to stop
	done      sync.WaitGroup // who accepts, and connections
}

// ClientAuth is what a listener wants to know of clients. Connections go on in a reload only if that stays the same.
type ClientAuth struct {
	TLS     bool
	How     tls.ClientAuthType
	special bool // of clients with certificates it is not known whether they would be let in again
}

// ClientAuthOf is what c, nil for none, wants to know.
func ClientAuthOf(c *tls.Config) ClientAuth {
	if c == nil {
		return ClientAuth{}
	}
	return ClientAuth{TLS: true, How: c.ClientAuth, special: c.ClientAuth != tls.NoClientCert}
}

// Same reports whether clients that were let in under a would be let in under b.
func (a ClientAuth) Same(b ClientAuth) bool { return a == b && !a.special }

// ConfigFor is what c means for one client.
func ConfigFor(c *tls.Config, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c.GetConfigForClient != nil {
		if own, err := c.GetConfigForClient(hello); own != nil || err != nil {
			return own, err
		}
	}
	return c, nil
}

// NewListener is a Listener for s, without connections.
func NewListener(s *service.Service, auth ClientAuth) *Listener {
	l := &Listener{auth: auth, conns: map[*Conn]struct{}{}, spare: make(chan *Conn), ended: make(chan struct{})}
	l.Seat.Sit(s)
	l.admission = NewAdmission(&l.Seat)
	return l
}

// Fits reports whether l may go on with a server that wants to know so much of clients. It does not matter whether that
// one reads PROXY headers: who a connection is of was told at its begin, and holds as long as it lasts.
func (l *Listener) Fits(auth ClientAuth) bool { return l.auth.Same(auth) }

// Holds implements service.Heirloom.
func (l *Listener) Holds(s *service.Service) bool {
	if l.readers.holds(s) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.Holds(s) {
			return true
		}
	}
	return false
}

// ListenOn makes from the listener of l. That of the server before ends its loop with it.
func (l *Listener) ListenOn(from net.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeListener()
	l.listener, l.closed = from, make(chan struct{})
	l.done.Add(1) // Serve
}

// closeListener closes the listener, if there is one. It is called with mu held.
func (l *Listener) closeListener() {
	if l.closed == nil {
		return
	}
	if l.beforeEnd != nil {
		l.beforeEnd()
		l.beforeEnd = nil
	}
	l.listener.Close()
	close(l.closed)
	l.closed = nil
}

// gone is closed when from has been closed. before is called before that.
func (l *Listener) gone(from net.Listener, before func()) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil || l.listener != from {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	l.beforeEnd = before
	return l.closed
}

// Serve accepts connections of from, which ListenOn was told, until it is closed.
func (l *Listener) Serve(from net.Listener, h Handler) error {
	defer l.done.Done()
	littleUnsent(from)
	if l.serveLight(from, h) {
		return nil
	}
	for {
		nc, err := from.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || l.stopping.Load() {
				return nil
			}
			l.tell(err)
			time.Sleep(acceptErrorPause) // such as no file descriptors: it may pass
			continue
		}
		l.admit(nc, h)
	}
}

// tell tells why no connections are accepted.
func (l *Listener) tell(err error) {
	if l.troubled.May() {
		log.Warningf("Connections to %s wait until they can be accepted: %v", l.Now().Label, err)
	}
}

// admit serves a connection when there is a place for it. Meanwhile others wait in the backlog.
func (l *Listener) admit(nc net.Conn, h Handler) {
	c := newConn(l, nc, h.TLS)
	c.protocol = h.New(c)
	slot := l.admission.Enter(Peer(nc), c, Forever)
	if slot == nil {
		c.Abort()
		return
	}
	c.slot = slot
	l.enter(c)
	l.run(c)
}

// run has a connection served, on a goroutine whose connection is over if one waits: its stack has grown already, which
// is a tenth of what a short connection costs.
func (l *Listener) run(c *Conn) {
	select {
	case l.spare <- c:
	default:
		go func() {
			for c != nil {
				c.run()
				c = l.await()
			}
		}()
	}
}

// maxSpare is how many goroutines wait for connections. More would only hold memory: they wait for a moment each while
// connections come fast, and come seldom otherwise.
const maxSpare = 8

// await waits for the next connection. It is nil if enough goroutines wait, or none will come.
func (l *Listener) await() (c *Conn) {
	if l.spares.Add(1) <= maxSpare {
		select {
		case c = <-l.spare:
		case <-l.ended:
		}
	}
	l.spares.Add(-1)
	return c
}

const acceptErrorPause = 5 * time.Millisecond

func (l *Listener) enter(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	l.done.Add(1)
	if l.stopping.Load() {
		c.protocol.Drain() // it was accepted last
	}
}

func (l *Listener) leave(c *Conn) {
	c.slot.Leave()
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	l.done.Done()
}

// Stop closes the listener, and each connection when its queries are answered. A connection that the
// listener gave away last is served, too.
func (l *Listener) Stop(ctx context.Context) error {
	l.mu.Lock()
	from := l.listener
	l.mu.Unlock()
	if l.Now().Leaving.Load() {
		Quiesce(from) // others may listen there: none of their clients is to be lost in our backlog
	}
	l.mu.Lock()
	l.stopped = time.Now()
	if !l.stopping.Swap(true) {
		close(l.ended)
	}
	for c := range l.conns {
		c.protocol.Drain()
	}
	l.mu.Unlock()
	l.admission.Close()
	l.readers.stop()
	l.mu.Lock()
	l.closeListener()
	l.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		if l.Beside != nil {
			l.Beside.Stop(ctx)
		}
		l.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.conns {
			c.Abort()
		}
		return ctx.Err()
	}
}
