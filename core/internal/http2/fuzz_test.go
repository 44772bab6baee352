package http2

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/coretest"
)

// FuzzConn has clients that send anything behind the preface: the connection ends, and nothing is left.
func FuzzConn(f *testing.F) {
	var frames bytes.Buffer
	p := coretest.NewH2(f, toBuffer{&frames})
	p.Framer.WriteSettings()
	p.Open(1, false, posting("/")...)
	p.Framer.WriteData(1, true, []byte("abc"))
	p.Open(3, true, getting("/20")...)
	p.Open(5, true, getting("/later")...)
	p.Framer.WriteWindowUpdate(0, 100)
	p.Framer.WritePing(false, [8]byte{})
	f.Add(frames.Bytes())
	s := coretest.Service(f, "https://fuzz")
	s.Read = 50 * time.Millisecond
	of := newSite()
	close(of.later)
	go func() { // nobody else takes what they say
		for {
			select {
			case <-of.waiting:
			case <-of.ended:
			}
		}
	}()
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, theirs := net.Pipe()
		conns := make(chan *Conn, 1)
		l := conn.NewListener(s, conn.ClientAuth{})
		from := &oneConn{conn: ours, closed: make(chan struct{})}
		l.ListenOn(from)
		go io.Copy(io.Discard, theirs)
		go func() {
			theirs.SetWriteDeadline(time.Now().Add(time.Second))
			io.WriteString(theirs, http2.ClientPreface)
			theirs.Write(b)
			theirs.Close()
		}()
		go l.Serve(from, conn.Handler{New: func(c *conn.Conn) conn.Protocol {
			h := New(c)
			conns <- h
			return protocol{h, of}
		}})
		h := <-conns
		<-h.ctx.Done()
		l.Stop(t.Context())
		if h.atWork != 0 || len(h.streams) != 0 || h.waiting != 0 {
			t.Fatalf("%d requests at work, %d streams, %d octets are left", h.atWork, len(h.streams), h.waiting)
		}
	})
}

// toBuffer is a connection on which nothing comes.
type toBuffer struct{ *bytes.Buffer }

func (toBuffer) Close() error                     { return nil }
func (toBuffer) LocalAddr() net.Addr              { return nil }
func (toBuffer) RemoteAddr() net.Addr             { return nil }
func (toBuffer) SetDeadline(time.Time) error      { return nil }
func (toBuffer) SetReadDeadline(time.Time) error  { return nil }
func (toBuffer) SetWriteDeadline(time.Time) error { return nil }

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
