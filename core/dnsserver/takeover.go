package dnsserver

import (
	"os"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// takeOver gives s the transport of the server before it that fits. It reports false if there is none.
func takeOver[T service.Heirloom](s *Server, fits func(T) bool) (t T, ok bool) {
	s.mu.Lock()
	before := s.predecessor
	s.mu.Unlock()
	if before == nil {
		return t, false
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	if before.stopped {
		return t, false
	}
	for i, r := range before.running {
		if t, ok = r.(T); ok && fits(t) {
			before.running = append(before.running[:i:i], before.running[i+1:]...)
			before.passed = append(before.passed, t)
			t.Sit(s.service())
			return t, true
		}
	}
	return t, false
}

// letGoTime is how long a server waits at most until the one before it has let go of a socket that only one can read:
// nobody can connect meanwhile, but tries again.
const letGoTime = 2 * time.Second

// afterPredecessor waits until the server before s is done with its socket, of which s has another descriptor. Of two
// that read it each would get a part of the other's datagrams, which mean nothing to it. The one before may be of
// another process, which this one takes over from (SIGUSR2). It reports false if s is to serve no more.
func (s *Server) afterPredecessor() bool {
	s.mu.Lock()
	before := s.predecessor
	s.mu.Unlock()
	switch {
	case before != nil:
		select {
		case <-before.drained:
		case <-s.told:
		case <-time.After(letGoTime):
		}
	case s.generation != nil && s.generation.giver != nil:
		select {
		case <-s.generation.giver:
		case <-time.After(letGoTime): // also if s is told to stop: see awaitGiver
		}
	}
	return !s.isStopped()
}

// expectFrom has a process pass on packets of QUIC to the server at an address. It is nil in a program without QUIC.
var expectFrom func(pid int, address string)

// expectPackets has the process before do so for all servers of g.
func (g *generation) expectPackets() {
	for _, s := range g.servers {
		trans, _ := parse.Transport(s.Addr)
		if expectFrom != nil && (trans == transport.QUIC || trans == transport.HTTPS3) && !s.readsProxyHeaders() {
			expectFrom(os.Getppid(), s.Address())
		}
	}
}

// awaitGiver waits until no server of g waits for the process that has handed over its sockets. A third process, which
// gets them from this one, takes its end for a sign that nobody reads them any more.
func (g *generation) awaitGiver() {
	if g.giver == nil {
		return
	}
	select {
	case <-g.settled:
	case <-time.After(letGoTime):
	}
}

// untilAnotherParent returns a channel that is closed when the process that has begun this one has ended: as one that
// hands over its sockets does, as soon as it has answered what it has read; or after so long.
func untilAnotherParent(most time.Duration) <-chan struct{} {
	gone, parent := make(chan struct{}), os.Getppid()
	go func() {
		for end := time.Now().Add(most); os.Getppid() == parent && time.Now().Before(end); {
			time.Sleep(letGoPause)
		}
		close(gone)
	}()
	return gone
}

// goneTime is how long a process that has handed over its sockets is waited for at most: longer than it has for its
// queries.
const goneTime = 6 * time.Second

// awaitGone waits until the process that has handed over its sockets to g has ended: what it has until then, such as
// files and network interfaces, plugins of the next configuration want. Those of g have found a way without.
func (g *generation) awaitGone() {
	for g.gone != nil && !givenUp.Load() {
		select {
		case <-g.gone:
			return
		case <-time.After(letGoPause):
		}
	}
}

const letGoPause = 5 * time.Millisecond
