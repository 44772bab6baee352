package endpoint

import (
	"net"
	"net/http"
	"sync"
)

// silentConns are the connections of a server on which no request has come yet. net/http would wait five seconds
// for each when the server stops.
type silentConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// note is told of each change of a connection's state.
func (s *silentConns) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != http.StateNew {
		delete(s.conns, c)
		return
	}
	if s.conns == nil {
		s.conns = map[net.Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
}

// close closes them.
func (s *silentConns) close() {
	s.mu.Lock()
	silent := s.conns
	s.conns = nil
	s.mu.Unlock()
	for c := range silent {
		c.Close()
	}
}
