package endpoint

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// shut is a connection that knows whether it was closed.
type shut struct {
	net.Conn
	closed bool
}

func (s *shut) Close() error {
	s.closed = true
	return nil
}

// Who makes room when there are too many connections.
func TestConnectionsMakeRoom(t *testing.T) {
	var o openConns
	conns := make([]*shut, mostConns)
	for i := range conns {
		conns[i] = new(shut)
		o.note(conns[i], http.StateNew)
	}
	if conns[0].closed {
		t.Fatal("one was closed while there was room")
	}
	o.note(conns[0], http.StateActive)
	o.note(conns[1], http.StateActive)
	o.note(conns[1], http.StateIdle)
	next := func(want *shut, why string) {
		t.Helper()
		o.note(new(shut), http.StateNew)
		if !want.closed {
			t.Errorf("%s did not make room", why)
		}
		if len(o.all) != mostConns {
			t.Errorf("%s: %d connections", why, len(o.all))
		}
	}
	for _, c := range conns[2:] {
		next(c, "the oldest on which nothing had come")
	}
	next(conns[1], "one that was idle")
	if conns[0].closed {
		t.Error("one was closed while it was answered")
	}
	for c := range o.all {
		if c != conns[0] {
			o.note(c, http.StateActive)
		}
	}
	next(conns[0], "the oldest of those that are answered")
	o.note(conns[0], http.StateIdle) // it had not noticed yet
	o.note(conns[0], http.StateClosed)
	if _, ok := o.all[conns[0]]; ok || len(o.all) != mostConns {
		t.Errorf("one that had made room counts: %d", len(o.all))
	}
}

// Whoever holds connections does not keep others out, and does not take all files.
func TestSilentConnectionsAreBounded(t *testing.T) {
	addr := loopback.Addr()
	one := newInstance("one", spec(addr, "/", "one"))
	must(t, one.start())
	defer one.end()
	for range 2 * mostConns {
		c, err := net.Dial("tcp", addr)
		must(t, err)
		defer c.Close()
	}
	want(t, addr, "/", "one") // which came after all of them
	o := &one.leases[0].server.conns
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.all); n == 0 || n > mostConns {
		t.Errorf("%d connections are held", n)
	}
}

// A client that does not take the end of TLS is not waited for, see openConns.makeRoom.
type reluctant struct{ *shut }

func (r reluctant) NetConn() net.Conn { return r.shut }
func (r reluctant) Close() error      { time.Sleep(time.Hour); return nil }

func TestRoomIsMadeWithoutAFarewell(t *testing.T) {
	var o openConns
	first := reluctant{new(shut)}
	o.note(first, http.StateNew)
	for range mostConns {
		o.note(new(shut), http.StateNew)
	}
	if !first.closed {
		t.Error("it was not closed")
	}
}
