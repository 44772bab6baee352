package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// writeTimeout is how long the system may take no more of what is written.
const writeTimeout = 2 * time.Second

// link is what connections of each kind have in common: a goroutine that dials, reads and closes, and one that writes.
type link struct {
	engine *engine
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	wake   chan struct{} // the writer has something to do

	// Guarded by the engine's lock.
	out      []byte   // what is not written yet
	conn     net.Conn // since it is open
	writeErr error    // why the writer ended
}

// linked is the kind of a connection. Its methods are called without the engine's lock.
type linked interface {
	dial() (net.Conn, error)
	// opened is told of the connection, before anything is read or written.
	opened(net.Conn)
	// write writes what was left in link.out.
	write(net.Conn, []byte) error
	// read reads until an error.
	read(net.Conn) error
	// lost is told the end of it all.
	lost(error)
}

func newLink(e *engine) link {
	l := link{engine: e, wake: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// run dials, and reads until the connection's end.
func (l *link) run(of linked) {
	defer l.cancel()
	conn, err := of.dial()
	if err != nil {
		of.lost(err)
		return
	}
	l.engine.mu.Lock()
	l.conn = conn
	l.engine.mu.Unlock()
	of.opened(conn)
	if l.ctx.Err() != nil { // closed during the dialling
		conn.SetReadDeadline(past)
	}
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		l.write(conn, of)
	}()
	err = of.read(conn)
	l.cancel() // ends the writer
	conn.SetWriteDeadline(past)
	<-writer
	if l.writeErr != nil && errors.Is(err, os.ErrDeadlineExceeded) { // the writer ended the reader
		err = l.writeErr
	}
	of.lost(err)
	conn.Close()
}

// flush makes the writer write. mu is held.
func (l *link) flush() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write writes what there is, as much as there is at a time, until an error or the connection's end.
func (l *link) write(conn net.Conn, of linked) {
	var buf []byte
	for {
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		l.engine.mu.Lock()
		buf, l.out = l.out, buf[:0]
		l.engine.unlock()
		if len(buf) == 0 {
			continue
		}
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := of.write(conn, buf); err != nil {
			l.engine.mu.Lock()
			l.writeErr = err
			l.engine.unlock()
			conn.SetReadDeadline(past) // ends the reader
			return
		}
		if cap(buf) > wire.MaxMessage {
			buf = nil
		}
	}
}

// close makes the reader end, which closes the connection. mu is not held.
func (l *link) close() {
	l.cancel()
	l.engine.mu.Lock()
	conn := l.conn
	l.engine.mu.Unlock()
	if conn != nil {
		conn.SetReadDeadline(past)
	}
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// without is all but one of them, in the same memory, which keeps nothing of it.
func without[T any](all []*T, one *T) []*T {
	if i := slices.Index(all, one); i >= 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}
