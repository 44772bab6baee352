package dnstap

import (
	"net"
	"sync/atomic"
	"time"

	framestream "github.com/farsightsec/golang-framestream"
)

const (
	handshakeTime = 4 * time.Second // also for each write
	flushEvery    = time.Second
	reportEvery   = 10 * time.Second
	queueUnit     = 10000 // frames
)

var contentType = []byte("protobuf:dnstap.Dnstap")

// queue is frames that wait for one peer.
type queue struct {
	frames  chan []byte
	dropped atomic.Uint64 // since the last report
}

func newQueue(units int) *queue { return &queue{frames: make(chan []byte, max(units, 1)*queueUnit)} }

// take takes a frame, or drops it if too many wait.
func (q *queue) take(frame []byte) {
	select {
	case q.frames <- frame:
	default:
		q.dropped.Add(1)
	}
}

// report warns if frames were dropped since the last time.
func (q *queue) report(l WarnLogger) {
	if n := q.dropped.Swap(0); n > 0 {
		l.Warningf("Dropped dnstap messages: %d", n)
	}
}

// handshake opens a stream of frames to the other side of conn.
func handshake(conn net.Conn) (*framestream.Writer, error) {
	return framestream.NewWriter(conn, &framestream.WriterOptions{
		ContentTypes: [][]byte{contentType}, Bidirectional: true, Timeout: handshakeTime,
	})
}
