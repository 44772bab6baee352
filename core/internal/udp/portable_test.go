package udp

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
)

// wrapped is a socket that somebody has wrapped.
type wrapped struct{ net.PacketConn }

// stamped is a dns.Writer that counts, and sets a flag in what it writes.
type stamped struct {
	dns.Writer
	n *atomic.Int32
}

func (s stamped) Write(b []byte) (int, error) {
	s.n.Add(1)
	b = bytes.Clone(b)
	b[3] |= 0x40 // Z
	return s.Writer.Write(b)
}

// What is no plain UDP socket, or has its writers decorated, is served one packet at a time: the former in both lanes,
// the latter in the message lane, so that a decorator sees all replies.
func TestPortable(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    net.PacketConn
		add  bool
	}{
		{"wrapped", wrapped{coretest.ListenUDP(t)}, false},
		{"decorated", coretest.ListenUDP(t), true},
		{"wrapped and decorated", wrapped{coretest.ListenUDP(t)}, true},
	} {
		var o Options
		var decorated atomic.Int32
		if tc.add {
			o.Decorate = func(w dns.Writer) dns.Writer {
				if _, ok := w.(dns.ResponseWriter); !ok {
					t.Errorf("%s: a %T is no ResponseWriter", tc.name, w)
				}
				return stamped{w, &decorated}
			}
		}
		s := serveOn(t, coretest.Service(t, coretest.Label(t), new(coretest.Lane)), tc.p, o)
		if _, ok := s.sockets[0].(*portableSocket); !ok || len(s.sockets) != 1 {
			t.Errorf("%s: %d sockets of %T", tc.name, len(s.sockets), s.sockets[0])
		}
		for name, want := range map[string]string{
			"www.":    "NOERROR 192.0.2.1",
			"local.":  "NOERROR 127.0.0.1",
			"block.":  "NOERROR 192.0.2.2",
			"park.":   "NOERROR 192.0.2.2",
			"unpack.": "NOERROR 192.0.2.3",
			"fail.":   "REFUSED",
		} {
			if tc.add {
				want = "NOERROR 192.0.2.3"
			}
			r := ask(t, s.addr, name, nil)
			if got := coretest.Describe(r); got != want || r.Zero != tc.add {
				t.Errorf("%s, %s: got %s, Z %v, want %s", tc.name, name, got, r.Zero, want)
			}
		}
		if n := decorated.Load(); tc.add && n != 6 || !tc.add && n != 0 {
			t.Errorf("%s: %d writes were decorated", tc.name, n)
		}
		if err := s.end(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// Queries that wait are answered before the sockets are closed, in either kind of socket.
func TestStopAnswersWhatWasReceived(t *testing.T) {
	for name, p := range map[string]net.PacketConn{"plain": shareable(t), "wrapped": wrapped{coretest.ListenUDP(t)}} {
		g := coretest.NewGate(t)
		s := serveOn(t, coretest.Service(t, coretest.Label(t), g), p, Options{})
		c := connected(t, s)
		if err := c.WriteMsg(coretest.Query("slow.")); err != nil {
			t.Fatal(err)
		}
		g.Holds(t, 1)
		ended := coretest.Stopping(t, s.end)
		g.Open()
		ended()
		if r, err := c.ReadMsg(); err != nil || coretest.Describe(r) != "NOERROR 192.0.2.1" {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// A transport that may wait no longer says so.
func TestStopGivesUp(t *testing.T) {
	g := coretest.NewGate(t)
	s := coretest.Service(t, coretest.Label(t), g)
	p := coretest.ListenUDP(t)
	addr := p.LocalAddr().String()
	u := New(s, p, Options{One: true})
	done := make(chan struct{})
	go func() { u.Serve(); close(done) }()
	c := connected(t, &served{addr: addr})
	if err := c.WriteMsg(coretest.Query("slow.")); err != nil {
		t.Fatal(err)
	}
	g.Holds(t, 1)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.Stop(over); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	<-done
}
