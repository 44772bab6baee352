package proxy

import (
	"bufio"
	"io"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// This file is what is on a connection of HTTP/3 beside requests: a control stream each way (RFC 9114 §6.2.1). An
// upstream tells there that it takes no more requests.

// http3Conn is what a connection of HTTP/3 has beside what all connections of QUIC have. The pool's lock guards it.
type http3Conn struct {
	asking  map[quic.StreamID]*quic.Stream // on which a response is waited for
	taken   quic.StreamID                  // requests on this stream and later ones are not taken, once told is set
	told    bool
	control bool // the upstream's control stream has come
}

const (
	controlStreams = 8        // an upstream has three of its own, and perhaps some that tell nothing
	maxControl     = 16 << 10 // octets of a frame on a control stream
)

// Streams of one direction (RFC 9114 §6.2, RFC 9204 §4.2).
const (
	controlStream = 0x0
	pushStream    = 0x1
	encoderStream = 0x2
	decoderStream = 0x3
)

// beginHTTP3 begins the control streams of l. The pool's lock is held.
func beginHTTP3(l *quicLink) {
	l.http3.asking = map[quic.StreamID]*quic.Stream{}
	running := &l.pool.engine.running
	running.Go(func() {
		s, err := l.OpenUniStream()
		if err == nil { // it stays open as long as the connection is
			_, err = s.Write([]byte{controlStream, frameSettings, 0})
		}
		if err != nil {
			l.CloseWithError(codeStreamCreation, "no control stream is taken")
		}
		for {
			s, err := l.AcceptUniStream(l.Context())
			if err != nil {
				return
			}
			running.Go(func() { l.hear(s) })
		}
	})
}

// hear reads a stream of the upstream's, and ends the connection if there is something wrong with it. Those of header
// compression are empty, as nothing but what both sides know from the start is referred to; they are not read.
func (l *quicLink) hear(s *quic.ReceiveStream) {
	r := bufio.NewReaderSize(s, 64)
	kind, err := quicvarint.Read(r)
	if err != nil {
		return
	}
	switch kind {
	case controlStream:
		err = l.hearControl(r)
	case pushStream:
		err = http3Fault{codeID, "a push"}
	case encoderStream, decoderStream:
		return
	default:
		s.CancelRead(quic.StreamErrorCode(codeStreamCreation))
		return
	}
	fault, ok := err.(http3Fault)
	if !ok {
		fault = http3Fault{codeClosedCriticalStream, "the control stream ended"}
	}
	l.CloseWithError(fault.code, fault.what)
}

// hearControl reads the upstream's control stream until it ends.
func (l *quicLink) hearControl(r *bufio.Reader) error {
	l.pool.mu.Lock()
	second := l.http3.control
	l.http3.control = true
	l.pool.mu.Unlock()
	if second {
		return http3Fault{codeStreamCreation, "a second control stream"}
	}
	for first := true; ; first = false {
		kind, err := quicvarint.Read(r)
		if err != nil {
			return err
		}
		n, err := quicvarint.Read(r)
		if err != nil {
			return err
		}
		if (kind == frameSettings) != first {
			if first {
				return http3Fault{codeMissingSettings, "no settings"}
			}
			return http3Fault{codeFrameUnexpected, "settings once more"}
		}
		if n > maxControl {
			return http3Fault{codeExcessiveLoad, "a frame is too long"}
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(r, payload); err != nil {
			return err
		}
		if err := l.controlled(kind, payload); err != nil {
			return err
		}
	}
}

// controlled does what a frame says.
func (l *quicLink) controlled(kind uint64, payload []byte) error {
	switch {
	case kind == frameGoAway:
		id, n, err := quicvarint.Parse(payload)
		if err != nil || n != len(payload) {
			return http3Fault{codeFrame, "GOAWAY"}
		}
		return l.goesAway(quic.StreamID(id))
	case kind == frameData, kind == frameHeaders, kind == framePushPromise, kind == frameMaxPushID, ofHTTP2(kind):
		return http3Fault{codeFrameUnexpected, "on the control stream"}
	case kind == frameCancelPush:
		return http3Fault{codeID, "no push was taken"}
	}
	return nil // what settings allow is not made use of
}

// goesAway is told that the upstream takes no requests on streams from id on (RFC 9114 §5.2). They may be made again.
func (l *quicLink) goesAway(id quic.StreamID) error {
	q := l.pool
	q.mu.Lock()
	defer q.mu.Unlock()
	if id%4 != 0 || l.http3.told && id > l.http3.taken {
		return http3Fault{codeID, "GOAWAY"}
	}
	l.http3.told, l.http3.taken = true, id
	for _, s := range l.http3.asking {
		if !l.takes(s) {
			l.cancel(s)
		}
	}
	q.retire(l)
	return nil
}

// isAway reports whether the upstream takes no more requests on l. There is no use in waiting for a stream then.
func (l *quicLink) isAway() bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.http3.told
}

// takes reports whether a request on s is one that the upstream takes, as far as it has told. The pool's lock is held.
func (l *quicLink) takes(s *quic.Stream) bool { return !l.http3.told || s.StreamID() < l.http3.taken }

// enter reports whether a request may be made on s, and has it stop waiting if the upstream goes away.
func (l *quicLink) enter(s *quic.Stream) bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if !l.takes(s) {
		l.cancel(s)
		return false
	}
	l.http3.asking[s.StreamID()] = s
	return true
}

// leaves is told that the request on s is over.
func (l *quicLink) leaves(s *quic.Stream) {
	l.pool.mu.Lock()
	delete(l.http3.asking, s.StreamID())
	l.pool.mu.Unlock()
}
