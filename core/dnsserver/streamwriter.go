package dnsserver

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// streamWriter writes to a connection. What comes while one piece is being written goes out together in the next write. Any
// goroutine may use it.
type streamWriter struct {
	conn    net.Conn // what is written to: with TLS that of crypto/tls
	cut     func()   // ends the connection, as it cannot be written to
	server  *Server
	timeout time.Duration // for the client to take one piece
	most    int           // octets that may wait for the client; 0 is any number

	mu         sync.Mutex
	taken      sync.Cond // a piece has been written, or cannot be
	pending    []byte    // to be written
	spare      []byte    // the buffer that was written last
	charged    int       // octets of both that the ledger knows
	writing    bool
	collecting bool  // flush will be called, or what is added is too much
	ended      bool  // the ledger does not know the buffers any more
	err        error // of a write; nothing more is written after it
}

var (
	errLongMessage = errors.New("message is longer than 65535 octets")
	errInFlight    = errors.New("too many replies wait for clients that do not read them")
)

const (
	// keptSpace is how long a buffer may be that an idle connection keeps.
	keptSpace = 16 << 10
	// piece is how much is written at one time, about: as much as a TLS record holds.
	piece = 16 << 10
)

func (w *streamWriter) init(conn net.Conn, s *Server, cut func()) {
	w.conn, w.cut, w.server, w.timeout, w.most = conn, cut, s, s.WriteTimeout, s.limits.unread
	w.taken.L = &w.mu
}

// writeFrame writes a message with its length before it, and all that has been added, when those have run that can do so now: they may have
// replies, too. It waits if too much waits to be written already.
func (w *streamWriter) writeFrame(b []byte) error {
	head, err := frameHead(b)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.await()
	if err := w.put(head[:], b); err != nil {
		return err
	}
	if !w.writing && (!w.collecting || len(w.pending) >= piece) {
		w.writing = true
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
		w.writeAll()
	}
	return w.err
}

// addFrame puts a message, with its length before it, behind what is to be written, and does not wait. It reports whether there is enough to
// be written now.
func (w *streamWriter) addFrame(b []byte) (full bool) {
	head, err := frameHead(b)
	return err == nil && w.add(head[:], b)
}

// add puts head and b behind what is to be written. See addFrame.
func (w *streamWriter) add(head, b []byte) (full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(head, b)
	return len(w.pending) >= piece
}

// sendFrame is addFrame, and has what has been added written by somebody else.
func (w *streamWriter) sendFrame(b []byte) {
	if head, err := frameHead(b); err == nil {
		w.send(head[:], b)
	}
}

// send is add, and has what has been added written by somebody else.
func (w *streamWriter) send(head, b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.put(head, b) == nil {
		w.handOver()
	}
}

// frameHead is the length of a message, which stands before it.
func frameHead(b []byte) (head [2]byte, err error) {
	if len(b) > wire.MaxMessage {
		return head, errLongMessage
	}
	binary.BigEndian.PutUint16(head[:], uint16(len(b)))
	return head, nil
}

// flush writes what has been added, unless somebody is writing: he takes it along. It waits if that is too much.
func (w *streamWriter) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write()
	w.await()
	return w.err
}

// collect leaves what is added to flush, until it is too much, or lets who adds it write it.
func (w *streamWriter) collect(on bool) {
	w.mu.Lock()
	w.collecting = on
	w.mu.Unlock()
}

// release has what has been added written by somebody else, and does not wait.
func (w *streamWriter) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collecting = false
	if len(w.pending) > 0 {
		w.handOver()
	}
}

// handOver has what is pending written by somebody else. mu is held.
func (w *streamWriter) handOver() {
	if !w.writing {
		w.writing = true
		go w.writeOut()
	}
}

// complete is flush, and returns only when all that has been added is written, by whomever, or cannot be. It is for the end of a connection:
// closing it takes what somebody else has still to write with it.
func (w *streamWriter) complete() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write()
	for w.writing && w.err == nil {
		w.taken.Wait()
	}
}

// put appends head and b. It is called with mu held, as are all below.
func (w *streamWriter) put(head, b []byte) error {
	if n := len(head) + len(b); w.err == nil && cap(w.pending)-len(w.pending) < n {
		w.grow(n)
	}
	if w.err == nil {
		w.pending = append(append(w.pending, head...), b...)
	}
	return w.err
}

// await waits until not too much waits to be written.
func (w *streamWriter) await() {
	for w.err == nil && w.most > 0 && len(w.pending) > w.most {
		if !w.writing {
			w.write()
			continue
		}
		w.taken.Wait()
	}
}

// grow makes pending longer and tells the ledger.
func (w *streamWriter) grow(n int) {
	size := max(2*cap(w.pending), len(w.pending)+n, 512)
	if w.ended || !inFlight.take(size-cap(w.pending)) {
		if !w.ended {
			w.server.limited("in_flight_bytes")
		}
		w.fail(errInFlight)
		return
	}
	w.charged += size - cap(w.pending)
	w.pending = append(make([]byte, 0, size), w.pending...)
}

// write writes what is pending, unless somebody does. It gives mu up while it writes.
func (w *streamWriter) write() {
	if !w.writing {
		w.writing = true
		w.writeAll()
	}
}

// writeOut is a goroutine that writes what is pending.
func (w *streamWriter) writeOut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeAll()
}

// writeAll is called by the one who has set writing.
func (w *streamWriter) writeAll() {
	for len(w.pending) > 0 && w.err == nil {
		out := w.pending
		w.pending, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		w.conn.SetWriteDeadline(time.Now().Add(w.timeout))
		_, err := w.conn.Write(out)
		w.mu.Lock()
		if err != nil {
			w.fail(err)
		}
		w.keep(out)
		w.taken.Broadcast()
	}
	w.writing = false
	w.taken.Broadcast()
	if len(w.pending) == 0 && cap(w.pending) > keptSpace {
		w.drop(w.pending)
		w.pending = nil
	}
}

// keep keeps the buffer that was written, unless it is a long one that was needed once.
func (w *streamWriter) keep(out []byte) {
	if cap(out) <= keptSpace || len(w.pending) > keptSpace {
		w.spare = out[:0]
		return
	}
	w.drop(out)
}

// drop tells the ledger that a buffer is used no more.
func (w *streamWriter) drop(b []byte) {
	if !w.ended {
		w.charged -= cap(b)
		inFlight.give(cap(b))
	}
}

func (w *streamWriter) fail(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.server.limited("write_time")
	}
	if w.err == nil {
		w.err = err
		w.cut()
	}
}

// end gives the memory back. Nothing is written any more.
func (w *streamWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = net.ErrClosed
	}
	inFlight.give(w.charged)
	w.charged, w.ended = 0, true
	w.pending, w.spare = nil, nil
	w.taken.Broadcast()
}
