package udp

import (
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// A loop that yields looks a second time before it waits, whether it reads upstreams beside its socket or not, and no
// oftener; one that does not wait looks once.
func TestYield(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		yields, upstreams, wait bool
		looks                   int
	}{
		{"waits", false, false, true, 1},
		{"yields", true, false, true, 2},
		{"does not wait", true, false, false, 1},
		{"waits, with upstreams", false, true, true, 1},
		{"yields, with upstreams", true, true, true, 2},
		{"does not wait, with upstreams", true, true, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			looks := 0
			s := newIntake(t, tc.upstreams, func(uintptr) (int, error) {
				looks++
				return 0, nil
			})
			s.yields = tc.yields
			stop := time.AfterFunc(100*time.Millisecond, s.wake)
			defer stop.Stop()
			n, err := s.receive(tc.wait)
			if n != 0 || looks != tc.looks || tc.wait == (err == nil) {
				t.Errorf("read %d in %d looks (%v), want 0 in %d", n, looks, err, tc.looks)
			}
		})
	}
}

// What comes while others have the processor is read without waiting.
func TestYieldFinds(t *testing.T) {
	for _, upstreams := range []bool{false, true} {
		looks := 0
		s := newIntake(t, upstreams, func(uintptr) (int, error) {
			if looks++; looks == 1 {
				return 0, nil
			}
			return 3, nil
		})
		s.yields = true
		stop := time.AfterFunc(10*time.Second, s.wake)
		if n, err := s.receive(true); n != 3 || err != nil {
			t.Errorf("upstreams %v: read %d (%v), want 3", upstreams, n, err)
		}
		stop.Stop()
	}
}

// newIntake is the reading side of a socket that nothing comes on.
func newIntake(t *testing.T, upstreams bool, read func(uintptr) (int, error)) *intake {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	s := &intake{}
	s.init(raw, conn.SetReadDeadline, read)
	if upstreams {
		s.watchUpstreams(eventloop.New())
		if err := s.upstreams.begin(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.endUpstreams)
	}
	return s
}
