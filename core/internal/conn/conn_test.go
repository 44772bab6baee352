package conn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// A connection is found by what is spoken on it, with TLS and without.
func TestOf(t *testing.T) {
	l := NewListener(lineService(t), ClientAuth{})
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	plain, encrypted := newConn(l, ours, nil), newConn(l, ours, new(tls.Config))
	if Of(plain.Upper) != plain || Of(encrypted.Upper) != encrypted {
		t.Error("is not found")
	}
	if Of(ours) != nil || Of(tls.Client(theirs, new(tls.Config))) != nil {
		t.Error("one of somebody else is found")
	}
}

// One that was left to somebody is not closed.
type leaving struct {
	*Conn
	to chan<- net.Conn
}

func (p leaving) Serve()      { p.Hijack(); p.to <- p.Upper }
func (p leaving) BeforeWait() {}
func (p leaving) Drain()      {}

func TestHijack(t *testing.T) {
	from := coretest.ListenTCP(t)
	l := NewListener(lineService(t), ClientAuth{})
	l.ListenOn(from)
	left := make(chan net.Conn, 1)
	end := coretest.Serving(t, l, func() error {
		return l.Serve(from, Handler{New: func(c *Conn) Protocol { return leaving{c, left} }})
	})
	c := coretest.Dial(t, from.Addr().String())
	ours := <-left
	if err := end(); err != nil {
		t.Error(err)
	}
	if !Of(ours).Hijacked() {
		t.Error("it is not known that it was left to us")
	}
	told := make(chan struct{})
	Of(ours).Closed(func() { close(told) })
	io.WriteString(ours, "x")
	b := make([]byte, 1)
	if _, err := io.ReadFull(c, b); err != nil || b[0] != 'x' {
		t.Errorf("got %q, %v", b, err)
	}
	ours.Close()
	<-told
	if !closed(c) {
		t.Error("stays open")
	}
}

// A connection is idle since its last query came or was answered, and not while one is at work.
func TestIdleSince(t *testing.T) {
	s := lineService(t)
	l := NewListener(s, ClientAuth{})
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(l, ours, nil)
	began := service.Now()
	c.Touch(time.Now().Add(-time.Minute))
	if since, idle := c.IdleSince(); !idle || began-since < int64(50*time.Second) {
		t.Errorf("idle %v, for %v", idle, time.Duration(began-since))
	}
	if left := c.IdleLeft(30 * time.Second); left > 0 {
		t.Errorf("%v are left", left)
	}
	c.Begin(s)
	if _, idle := c.IdleSince(); idle || c.IdleLeft(time.Second) != time.Second {
		t.Error("idle with a query at work")
	}
	if n := s.Inflight.Count(); n != 1 {
		t.Errorf("its server knows of %d queries", n)
	}
	c.End(s)
	if since, idle := c.IdleSince(); !idle || since < began || s.Inflight.Count() != 0 {
		t.Errorf("idle %v since %d, began at %d", idle, since, began)
	}
	<-c.Answered()
	c.Evict(true)
	if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("is not closed: %v", err)
	}
}

// The time for the first query begins when it can be read: when the handshake is over, be it slow, and the connection has
// the place that it had to wait for.
func TestIdleSinceReady(t *testing.T) {
	for name, tc := range map[string]struct {
		config *tls.Config
		places int
	}{
		"waits for a place":          {nil, 1},
		"waits for a place with TLS": {coretest.Certificate(t, "lines"), 1},
		"is slow with its handshake": {coretest.Certificate(t, "lines"), 2},
	} {
		s, of := lineService(t), newLineServer()
		s.Connections = tc.places
		since := make(chan int64, 1)
		from := coretest.ListenTCP(t)
		l := NewListener(s, ClientAuthOf(tc.config))
		l.ListenOn(from)
		coretest.Serving(t, l, func() error {
			return l.Serve(from, Handler{TLS: tc.config, New: func(c *Conn) Protocol { return noting{of.New(c), c, since} }})
		})
		first := connect(t, from.Addr().String(), tc.config)
		fmt.Fprintln(first, "slow")
		<-of.begun
		<-since
		slow := coretest.DialPausing(t, from.Addr().String())
		c := net.Conn(slow)
		if tc.config != nil {
			c = tls.Client(slow, clients.Trusting)
		}
		answer := make(chan string, 1)
		go func() { answer <- told(t, c, "who") }()
		if tc.places == 1 {
			eventually.Holds(t, "it waits for a place", func() bool { return coretest.Limited(s, "connections") == 1 })
		} else {
			<-slow.Paused
		}
		until := service.Now()
		close(of.slow)
		close(slow.GoOn)
		if at := <-since; at < until {
			t.Errorf("%s: idle for %v as it begins", name, time.Duration(until-at))
		}
		if got := <-answer; got != "127.0.0.1" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// noting tells since when the connection is idle when it begins.
type noting struct {
	Protocol
	c     *Conn
	since chan<- int64
}

func (n noting) Serve() {
	at, _ := n.c.IdleSince()
	n.since <- at
	n.Protocol.Serve()
}

// What TLS knows of a connection is known once the handshake is over.
func TestConnectionState(t *testing.T) {
	config := coretest.Certificate(t, "lines")
	of := newLineServer()
	states := make(chan *tls.ConnectionState, 1)
	from := coretest.ListenTCP(t)
	l := NewListener(lineService(t), ClientAuthOf(config))
	l.ListenOn(from)
	coretest.Serving(t, l, func() error {
		return l.Serve(from, Handler{TLS: config, New: func(c *Conn) Protocol { return stating{of.New(c), c, states} }})
	})
	offer := clients.Trusting.Clone()
	offer.NextProtos = []string{"lines"}
	raw := &tallying{Conn: coretest.Dial(t, from.Addr().String())}
	c := tls.Client(raw, offer)
	if got := told(t, c, "who"); got != "127.0.0.1" {
		t.Errorf("got %s", got)
	}
	if s := <-states; s == nil || !s.HandshakeComplete || s.NegotiatedProtocol != "lines" {
		t.Errorf("got %v", s)
	}
	// The client is told when no more comes.
	raw.n = 0
	if got := told(t, c, "bye"); got != "no answer" || raw.n == 0 {
		t.Errorf("got %s, in %d octets; want a close_notify alert", got, raw.n)
	}
}

// tallying counts the octets that come.
type tallying struct {
	net.Conn
	n int
}

func (c *tallying) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n += n
	return n, err
}

// stating tells the state of TLS when it begins.
type stating struct {
	Protocol
	c      *Conn
	states chan<- *tls.ConnectionState
}

func (s stating) Serve() { s.states <- s.c.TLS; s.Protocol.Serve() }

// counting notes how often it is told before a wait.
type counting struct{ waits int }

func (c *counting) Serve()      {}
func (c *counting) BeforeWait() { c.waits++ }
func (c *counting) Drain()      {}

// scripted is a connection from which pieces come.
type scripted struct {
	net.Conn
	pieces []string
	closes int
}

func (s *scripted) Read(b []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.pieces[0])
	s.pieces = s.pieces[1:]
	return n, nil
}

func (s *scripted) Close() error { s.closes++; return nil }

// The protocol is told before each read that may wait, and of none that a buffer serves.
func TestBeforeWait(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ahead bool
		piece int
		reads []string
		waits int
	}{
		{"without a buffer", false, 2, []string{"ab", "cd", ""}, 3},
		{"in small pieces", true, 2, []string{"ab", "cd", ""}, 3},
		{"smaller than came", true, 1, []string{"a", "b", "c", "d", ""}, 3},
		{"larger than the buffer", true, readSpace, []string{"ab", "cd", ""}, 3},
	} {
		p := new(counting)
		l := &lowerConn{Conn: &scripted{pieces: []string{"ab", "cd"}}, owner: &Conn{protocol: p}, ahead: tc.ahead}
		for i, want := range tc.reads {
			b := make([]byte, tc.piece)
			n, err := l.Read(b)
			if string(b[:n]) != want || (err == io.EOF) != (want == "") {
				t.Errorf("%s, read %d: got %q, %v, want %q", tc.name, i, b[:n], err, want)
			}
		}
		if p.waits != tc.waits {
			t.Errorf("%s: told %d times, want %d", tc.name, p.waits, tc.waits)
		}
	}
}

func TestLowerConnCloses(t *testing.T) {
	s, told := new(scripted), 0
	l := &lowerConn{Conn: s, closed: func() { told++ }}
	l.Close()
	l.Close()
	if s.closes != 2 || told != 2 {
		t.Errorf("closed %d times, told %d times", s.closes, told)
	}
	if err := l.CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("half of a connection that has none: %v", err)
	}
}
