package proxyproto

import (
	"net/netip"
	"sync"
	"testing"
	"time"
)

// peer returns the address of a proxy, client that of a client.
func peer(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 1001)
}

func client(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 12345)
}

// known returns which of the first n peers have sessions, without using them.
func known(s *sessions, n int) (list []int) {
	for i := range n {
		if _, ok := s.byPeer[peer(i)]; ok {
			list = append(list, i)
		}
	}
	return list
}

func TestSessionsForgetTheQuietest(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSessions(3, time.Minute)
	for i := range 3 {
		s.begin(peer(i), client(i), now)
	}
	if got, ok := s.client(peer(0), now); !ok || got != client(0) {
		t.Errorf("got %v, %t", got, ok)
	}
	s.begin(peer(3), client(3), now)
	if got := known(s, 5); len(got) != 3 || got[0] != 0 || got[1] != 2 {
		t.Errorf("got %v, want all but 1", got)
	}
	// A session that begins again is used, too, and may be another client's.
	s.begin(peer(2), client(9), now)
	s.begin(peer(4), client(4), now)
	if got, ok := s.client(peer(2), now); !ok || got != client(9) {
		t.Errorf("got %v, %t, want the new client", got, ok)
	}
	if got := known(s, 5); len(got) != 3 || got[0] != 2 || s.recent.Len() != 3 {
		t.Errorf("got %v, list of %d", got, s.recent.Len())
	}
}

func TestSessionsExpire(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSessions(100, time.Minute)
	for i := range 10 {
		s.begin(peer(i), client(i), now)
	}
	now = now.Add(time.Minute - 1)
	if _, ok := s.client(peer(5), now); !ok {
		t.Error("gone too early")
	}
	now = now.Add(1)
	if _, ok := s.client(peer(4), now); ok {
		t.Error("still there")
	}
	// A new one sweeps the others out.
	s.begin(peer(10), client(10), now)
	if got := known(s, 11); len(got) != 2 || got[0] != 5 || got[1] != 10 || s.recent.Len() != 2 {
		t.Errorf("got %v, list of %d", got, s.recent.Len())
	}
}

func TestSessionsConcurrently(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSessions(16, time.Minute)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				s.begin(peer(i%64), client(i%64), now)
				if got, ok := s.client(peer(i%32), now); ok && got != client(i%32) {
					t.Errorf("%d: got %v", i, got)
				}
			}
		})
	}
	wg.Wait()
	if len(s.byPeer) != 16 || s.recent.Len() != 16 {
		t.Errorf("got %d and %d sessions, want 16", len(s.byPeer), s.recent.Len())
	}
}
