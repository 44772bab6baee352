package proxyproto

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// sessions remembers for which client a proxy's address and port stands. Each use makes a session last for another
// ttl, so the order of use is also that of expiry. A nil table has no sessions.
type sessions struct {
	limit int
	ttl   time.Duration

	mu     sync.Mutex
	byPeer map[netip.AddrPort]*list.Element
	recent *list.List // of *session, the last used first
}

// session is one address of a proxy, on behalf of one client.
type session struct {
	peer    netip.AddrPort
	client  netip.AddrPort
	expires time.Time
}

// newSessions returns an empty table for at most limit sessions.
func newSessions(limit int, ttl time.Duration) *sessions {
	return &sessions{limit: limit, ttl: ttl, byPeer: make(map[netip.AddrPort]*list.Element), recent: list.New()}
}

// begin remembers that peer stands for client, and forgets what is over or too much.
func (s *sessions) begin(peer, client netip.AddrPort, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byPeer[peer]; ok {
		s.use(e, now)
		e.Value.(*session).client = client
		return
	}
	for oldest := s.recent.Back(); oldest != nil; oldest = s.recent.Back() {
		if s.recent.Len() < s.limit && now.Before(oldest.Value.(*session).expires) {
			break
		}
		s.forget(oldest)
	}
	s.byPeer[peer] = s.recent.PushFront(&session{peer: peer, client: client, expires: now.Add(s.ttl)})
}

// client returns for whom peer stands, and whether that is known.
func (s *sessions) client(peer netip.AddrPort, now time.Time) (netip.AddrPort, bool) {
	if s == nil {
		return netip.AddrPort{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byPeer[peer]
	if !ok {
		return netip.AddrPort{}, false
	}
	if !now.Before(e.Value.(*session).expires) {
		s.forget(e)
		return netip.AddrPort{}, false
	}
	s.use(e, now)
	return e.Value.(*session).client, true
}

// use makes e last. s.mu must be held.
func (s *sessions) use(e *list.Element, now time.Time) {
	e.Value.(*session).expires = now.Add(s.ttl)
	s.recent.MoveToFront(e)
}

// forget removes e. s.mu must be held.
func (s *sessions) forget(e *list.Element) {
	delete(s.byPeer, e.Value.(*session).peer)
	s.recent.Remove(e)
}
