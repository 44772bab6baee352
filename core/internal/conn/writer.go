package conn

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Writer writes to a connection. What comes while one piece is being written goes out together in the next write. Any
// goroutine may use it.
type Writer struct {
	// Cut is where the first message of what is written ends. With TLS each message begins a record then: some
	// clients, such as dnsdist 1.7 and dnsperf 2.10, take one message of a record, and no other one before more
	// comes. It is set at the begin; nil is for what has no messages.
	Cut func(b []byte) int

	conn    net.Conn      // what is written to: with TLS that of crypto/tls
	low     *lowerConn    // below TLS; nil without
	cut     func()        // ends the connection, as it cannot be written to
	seat    *service.Seat // whose server counts what limits do
	timeout time.Duration // for the client to take a message, or as many octets; see longest
	most    int           // octets that may wait for the client; 0 is any number

	mu      sync.Mutex
	taken   sync.Cond // a piece has been written, or cannot be
	pending []byte    // to be written
	spare   []byte    // the buffer that was written last
	charged int       // octets of both that the ledger knows
	writing bool
	ended   bool  // the ledger does not know the buffers any more
	err     error // of a write; nothing more is written after it

	failed atomic.Bool // whether err is of a write
}

var (
	errLongMessage = errors.New("message is longer than 65535 octets")
)

const (
	// keptSpace is how long a buffer may be that an idle connection keeps.
	keptSpace = 16 << 10
	// piece is how much is written at one time, about: as much as a TLS record holds.
	piece = 16 << 10
	// longest is the octets for which a client has its time: those of the longest message, with its length before it.
	longest = 2 + wire.MaxMessage
)

func (w *Writer) init(conn net.Conn, p *service.Seat, cut func()) {
	s := p.Now()
	w.conn, w.cut, w.seat, w.timeout, w.most = conn, cut, p, s.Write, s.Unread
	w.taken.L = &w.mu
}

// WriteFrame writes a message with its length before it, and all that has been added, when those have run that can
// do so now: they may have replies, too. It waits if too much waits to be written already. The caller has a place of
// those at work.
func (w *Writer) WriteFrame(b []byte) error {
	head, err := frameHead(b)
	if err != nil {
		return err
	}
	var h eventloop.Holder
	unsent.Hold(&h, w.cutOff)
	defer h.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.await()
	if err := w.put(head[:], b); err != nil {
		return err
	}
	if !w.writing {
		w.writing = true
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
		w.writeAll()
	}
	return w.err
}

// AddFrame puts a message, with its length before it, behind what is to be written, and does not wait. It reports
// whether there is enough to be written now.
func (w *Writer) AddFrame(b []byte) (full bool) {
	head, err := frameHead(b)
	return err == nil && w.Add(head[:], b)
}

// Add puts head and b behind what is to be written. See AddFrame.
func (w *Writer) Add(head, b []byte) (full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(head, b)
	return len(w.pending) >= piece
}

// SendFrame is AddFrame, and has what has been added written by somebody else.
func (w *Writer) SendFrame(b []byte) {
	if head, err := frameHead(b); err == nil {
		w.Send(head[:], b)
	}
}

// Send is Add, and has what has been added written by somebody else.
func (w *Writer) Send(head, b []byte) {
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

// Flush writes what has been added, unless somebody is writing: he takes it along. It waits if that is too much.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write()
	w.await()
	return w.err
}

// FlushAtWork is Flush for who has a place of those at work.
func (w *Writer) FlushAtWork() error {
	var h eventloop.Holder
	unsent.Hold(&h, w.cutOff)
	defer h.Done()
	return w.Flush()
}

// cutOff ends the connection of a client for which somebody waits in a place that another query needs.
func (w *Writer) cutOff() {
	w.seat.Now().Limited("waiting")
	w.cut()
}

// handOver has what is pending written by somebody else. mu is held.
func (w *Writer) handOver() {
	if !w.writing {
		w.writing = true
		go w.writeOut()
	}
}

// complete is flush, and returns only when all that has been added is written, by whomever, or cannot be. It is for
// the end of a connection: closing it takes what somebody else has still to write with it.
func (w *Writer) complete() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write()
	for w.writing && w.err == nil {
		w.taken.Wait()
	}
}

// put appends head and b. It is called with mu held, as are all below.
func (w *Writer) put(head, b []byte) error {
	if n := len(head) + len(b); w.err == nil && cap(w.pending)-len(w.pending) < n {
		w.grow(n)
	}
	if w.err == nil {
		w.pending = append(append(w.pending, head...), b...)
	}
	return w.err
}

// await waits until not too much waits to be written.
func (w *Writer) await() {
	for w.err == nil && w.most > 0 && len(w.pending) > w.most {
		if !w.writing {
			w.write()
			continue
		}
		w.taken.Wait()
	}
}

// grow makes pending longer and tells the ledger.
func (w *Writer) grow(n int) {
	size := max(2*cap(w.pending), len(w.pending)+n, 512)
	if w.ended || !unsent.Take(w.charged, size-cap(w.pending)) {
		if !w.ended {
			w.seat.Now().Limited("in_flight_bytes")
		}
		w.fail(unsent.Err)
		return
	}
	w.charged += size - cap(w.pending)
	w.pending = append(make([]byte, 0, size), w.pending...)
}

// write writes what is pending, unless somebody does. It gives mu up while it writes.
func (w *Writer) write() {
	if !w.writing {
		w.writing = true
		w.writeAll()
	}
}

// writeOut is a goroutine that writes what is pending.
func (w *Writer) writeOut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeAll()
}

// writeAll is called by the one who has set writing.
func (w *Writer) writeAll() {
	for len(w.pending) > 0 && w.err == nil {
		out := w.pending
		w.pending, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		err := w.writePiece(out)
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

// writePiece writes b. Records of messages are held below TLS until the last one, so that they go out together. The
// client has its time for each message, however many wait with it: who is slow, and reads on, is not cut off.
func (w *Writer) writePiece(b []byte) error {
	for left := 0; len(b) > 0; {
		n := len(b)
		if w.Cut != nil && w.low != nil {
			n = min(n, w.Cut(b))
			w.low.holds.Store(n < len(b))
		} else {
			n = min(n, longest)
		}
		if left -= n; left < 0 {
			w.conn.SetWriteDeadline(time.Now().Add(w.timeout))
			left = longest - n
		}
		if _, err := w.conn.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// keep keeps the buffer that was written, unless it is a long one that was needed once.
func (w *Writer) keep(out []byte) {
	if cap(out) <= keptSpace || len(w.pending) > keptSpace {
		w.spare = out[:0]
		return
	}
	w.drop(out)
}

// drop tells the ledger that a buffer is used no more.
func (w *Writer) drop(b []byte) {
	if !w.ended {
		w.charged -= cap(b)
		unsent.Give(cap(b))
	}
}

func (w *Writer) fail(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.seat.Now().Limited("write_time")
	}
	if w.err == nil {
		w.err = err
		w.failed.Store(true)
		w.cut()
	}
}

// Failed reports whether nothing is written any more: whoever has queries of the client at hand need not answer them.
func (w *Writer) Failed() bool { return w.failed.Load() }

// end gives the memory back. Nothing is written any more.
func (w *Writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = net.ErrClosed
	}
	unsent.Give(w.charged)
	w.charged, w.ended = 0, true
	w.pending, w.spare = nil, nil
	w.taken.Broadcast()
}
