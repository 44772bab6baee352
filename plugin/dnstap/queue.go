package dnstap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	framestream "github.com/farsightsec/golang-framestream"

	"github.com/coredns/coredns/plugin/pkg/memory"
)

const (
	handshakeTime = 4 * time.Second // also for each piece that is written
	pieceSpace    = 64 << 10        // octets
	lastTime      = 2 * time.Second // for what waits at the end
	gatherTime    = 100 * time.Millisecond
	reportEvery   = 10 * time.Second
	lostAfter     = 7        // times that something was sent again, in 25 s on a quick link: most outages are shorter
	queueUnit     = 10000    // frames
	queueSpace    = 64 << 20 // octets of so many frames, at most
	keptSpace     = 1 << 20  // octets of a buffer that is kept

	heldShare = 16        // all queues may hold one part of so many of a limited memory
	ownSpace  = 256 << 10 // octets that a queue may hold in any case: a silent peer takes no frames from the others
)

// held is the octets that all queues of the process hold.
var held atomic.Int64

var contentType = []byte("protobuf:dnstap.Dnstap")

// queue is frames that wait for one peer, as they go out: each with its length before it. What comes within gatherTime
// is written in one piece, so that neither who is asked nor who writes pays for each frame.
type queue struct {
	most    int           // frames that may wait
	share   int64         // what held may be
	begun   chan struct{} // a frame waits where none did
	crowded chan struct{} // half of what may wait waits
	dropped atomic.Uint64 // since the last report

	mu      sync.Mutex
	pending []byte // guarded by mu, as all below
	spare   []byte // the buffer that was written last
	waiting int    // frames in pending
	writing int    // frames that are being written
	closed  bool   // nothing is taken any more
}

func newQueue(units int) *queue {
	return &queue{
		most: max(units, 1) * queueUnit, share: shareOf(memory.Limit()),
		begun: make(chan struct{}, 1), crowded: make(chan struct{}, 1),
	}
}

// shareOf is what all queues may hold where the process has so many octets of memory. Without a limit their own are enough.
func shareOf(limit int64) int64 {
	if limit == math.MaxInt64 {
		return limit
	}
	return limit / heldShare
}

// take takes n frames, or drops them if too many wait, or too long ones. It copies them.
func (q *queue) take(frames []byte, n int) {
	q.mu.Lock()
	if q.closed || q.waiting+q.writing+n > q.most || q.full(len(q.pending)+len(frames)) {
		q.mu.Unlock()
		q.dropped.Add(uint64(n))
		return
	}
	before := q.waiting
	q.pending = append(q.pending, frames...)
	q.waiting += n
	held.Add(int64(len(frames)))
	q.mu.Unlock()
	if before == 0 {
		signal(q.begun)
	}
	if half := q.most / 2; before < half && before+n >= half {
		signal(q.crowded)
	}
}

// full reports whether so many octets must not wait.
func (q *queue) full(n int) bool {
	return n > q.most/queueUnit*queueSpace || n > ownSpace && held.Load() > q.share
}

// signal leaves a note in c, where one is enough.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// gather waits until there is a piece to be written, after begun was read. It waits no longer when quit is closed.
func (q *queue) gather(quit <-chan struct{}) {
	t := time.NewTimer(gatherTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.crowded:
	case <-quit:
	}
}

// write writes what waits to conn. The other side has its time for each piece, so that one that is slow, and reads on, is
// not given up; between two pieces that is called. If a write fails, the frame that was being written is dropped, and
// those behind it wait on.
func (q *queue) write(conn net.Conn, between func()) error {
	q.mu.Lock()
	out := q.pending
	q.pending, q.spare = q.spare[:0], nil
	q.writing, q.waiting = q.waiting, 0
	q.mu.Unlock()
	if len(out) == 0 {
		return nil
	}
	n, err := 0, error(nil)
	for wrote := 0; n < len(out) && err == nil; n += wrote {
		if n > 0 {
			between()
		}
		conn.SetWriteDeadline(time.Now().Add(handshakeTime))
		wrote, err = conn.Write(out[n:min(n+pieceSpace, len(out))])
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	held.Add(-int64(len(out)))
	if err != nil {
		rest, left := behind(out, n)
		held.Add(int64(len(rest)))
		if left < q.writing {
			q.dropped.Add(1)
		}
		q.pending, q.waiting = append(append([]byte(nil), rest...), q.pending...), q.waiting+left
		if left > 0 {
			signal(q.begun)
		}
	}
	if q.writing = 0; cap(out) <= keptSpace {
		q.spare = out[:0]
	}
	return err
}

// behind is the frames of b behind the one that octet n belongs to, and how many these are.
func behind(b []byte, n int) (rest []byte, frames int) {
	for off := 0; off < len(b); {
		begin := off
		off += 4 + int(binary.BigEndian.Uint32(b[off:]))
		if begin <= n {
			rest = b[off:]
			continue
		}
		frames++
	}
	return rest, frames
}

// reporting is report whenever tick has ticked.
func (q *queue) reporting(l WarnLogger, tick <-chan time.Time) func() {
	return func() {
		select {
		case <-tick:
			q.report(l)
		default:
		}
	}
}

// report warns if frames were dropped since the last time.
func (q *queue) report(l WarnLogger) {
	if n := q.dropped.Swap(0); n > 0 {
		l.Warningf("Dropped dnstap messages: %d", n)
	}
}

// abandon drops what waits, as nobody will take it, and warns of all that was dropped.
func (q *queue) abandon(l WarnLogger) {
	q.dropped.Add(uint64(q.close()))
	q.report(l)
}

// close forgets what waits, and tells how many frames these were. From then on all are dropped.
func (q *queue) close() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.waiting
	held.Add(-int64(len(q.pending)))
	q.pending, q.waiting, q.closed = nil, 0, true
	return n
}

// gone reports whether the other side of conn has closed it, of which nothing else tells as long as there are no frames.
func gone(conn net.Conn) bool {
	conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// handshake opens a stream of frames to the other side of conn. Data frames are written to conn itself: the Writer
// keeps nothing back. The Writer's time is for each word that it reads, and begins behind a handshake of TLS; so all
// together have their time, too.
func handshake(conn net.Conn) (*framestream.Writer, error) {
	late := time.AfterFunc(handshakeTime, func() { conn.Close() })
	w, err := framestream.NewWriter(conn, &framestream.WriterOptions{
		ContentTypes: [][]byte{contentType}, Bidirectional: true, Timeout: handshakeTime,
	})
	if !late.Stop() {
		return nil, fmt.Errorf("handshake: %w", os.ErrDeadlineExceeded)
	}
	return w, err
}
