package proxy

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// Queries that find no stream for long are asked on more connections, at most so many.
func TestDoQFewStreams(t *testing.T) {
	server, roots := authority(t)
	const few, all = 2, 10
	var conns, arrived atomic.Int64
	together := make(chan struct{}) // closed when all are there
	addr := quicUpstream(t, server, &quic.Config{MaxIncomingStreams: few}, func(conn *quic.Conn) {
		conns.Add(1)
		streams(conn, func(s *quic.Stream) {
			if arrived.Add(1) == all {
				close(together)
			}
			<-together
			echoStream(s)
		})
	})
	p := quicTo(t, addr, roots)
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	askMany(t, p, all)
	if n := conns.Load(); n < all/few || n > maxQUICLinks {
		t.Errorf("%d connections", n)
	}
}

// One that answers nobody, and takes few streams, does not get more connections for that than any other.
func TestDoQFewStreamsOfTheSilent(t *testing.T) {
	server, roots := authority(t)
	var conns atomic.Int64
	addr := quicUpstream(t, server, &quic.Config{MaxIncomingStreams: 1}, func(conn *quic.Conn) {
		conns.Add(1)
		<-conn.Context().Done()
	})
	p := quicTo(t, addr, roots)
	p.SetReadTimeout(2 * time.Second)
	askInVain(t, p, 5)
	if n := conns.Load(); n == 0 || n > maxLive {
		t.Errorf("%d connections", n)
	}
}

// One that closes all but its first connection is not pressed to take more.
func TestDoQOneConnection(t *testing.T) {
	server, roots := authority(t)
	var conns atomic.Int64
	hold := make(chan struct{})
	addr := quicUpstream(t, server, &quic.Config{MaxIncomingStreams: 1}, func(conn *quic.Conn) {
		if conns.Add(1) > 1 {
			conn.CloseWithError(4, "")
			return
		}
		streams(conn, func(s *quic.Stream) {
			<-hold
			echoStream(s)
		})
	})
	p := quicTo(t, addr, roots)
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	began := time.Now()
	time.AfterFunc(1500*time.Millisecond, func() { close(hold) })
	askMany(t, p, 10)
	// Each second one is tried; a slow machine may have a second one, before it learns of the end of the first.
	if n := conns.Load(); n < 2 || n > 3+2*int64(time.Since(began).Nanoseconds()/slowDial) {
		t.Errorf("%d connections in %v", n, time.Since(began))
	}
}

// patient has p take no upstream for silent.
func patient(p *Proxy) {
	for p.engine.usual.Patience() < time.Minute {
		p.engine.usual.Note(time.Hour)
	}
}

// askInVain asks p for so many at one time, none of which is to be answered.
func askInVain(t *testing.T, p *Proxy, n int) {
	t.Helper()
	done := make(chan error)
	for range n {
		go func() {
			_, err := ask(p, "www.example.org.", Options{})
			done <- err
		}()
	}
	for range n {
		if <-done == nil {
			t.Error("a reply")
		}
	}
}

// A stream that is reset costs no further try, whatever its code means elsewhere.
func TestDoQResetStream(t *testing.T) {
	server, roots := authority(t)
	for _, code := range []quic.StreamErrorCode{doqNoMore, quic.StreamErrorCode(codeNoError)} {
		var asked atomic.Int64
		p := quicTo(t, quicUpstream(t, server, nil, func(conn *quic.Conn) {
			streams(conn, func(s *quic.Stream) {
				asked.Add(1)
				s.CancelRead(code)
				s.CancelWrite(code)
			})
		}), roots)
		p.SetReadTimeout(20 * time.Second)
		if _, err := ask(p, "www.example.org.", Options{}); err == nil || asked.Load() != 1 {
			t.Errorf("0x%x: asked %d times, %v", uint64(code), asked.Load(), err)
		}
	}
}
