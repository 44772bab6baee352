package quicconn

import (
	"bufio"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// handoverTime is how long a transport that has begun to pass on packets is waited for: longer than it has for its
	// queries.
	handoverTime = 6 * time.Second
	// maxPassed is how many packets wait to be read.
	maxPassed = 256
)

// handedOn is what another transport passes on.
type handedOn struct {
	packets chan frame
	over    chan struct{}                // closed when that is all
	awaited atomic.Pointer[net.UnixAddr] // where it is listened for; nil when it has come, or will not
}

// run takes what the transport before passes on, until it closes the handover, or has gone without one. closed ends it,
// too.
func (h *handedOn) run(l *net.UnixListener, gone, closed <-chan struct{}) {
	defer close(h.over)
	defer close(h.packets)
	accepted := make(chan struct{})
	go func() {
		defer l.Close()
		select {
		case <-accepted:
		case <-gone:
		case <-closed:
		}
	}()
	c := accept(l)
	h.awaited.Store(nil)
	close(accepted)
	if c == nil {
		return
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(handoverTime))
	h.take(bufio.NewReaderSize(c, 1<<16), closed)
}

// accept is the connection of a process of the same user, nil if l is closed before one comes.
func accept(l *net.UnixListener) *net.UnixConn {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil
		}
		if ofThisUser(c) {
			return c
		}
		c.Close()
	}
}

// take reads packets until there are no more.
func (h *handedOn) take(r io.Reader, closed <-chan struct{}) {
	var header [frameHeader]byte
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		from, oob, packet := lengths(header[:])
		b := make([]byte, from+oob+packet)
		if _, err := io.ReadFull(r, b); err != nil {
			return
		}
		select {
		case h.packets <- frame{b[:from], b[from:][:oob], b[from+oob:]}:
		case <-closed:
			return
		}
	}
}
