package dnsserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/udp"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/systemd"
)

// Stop makes all transports take no more queries, waits for those in flight, for a
// grace period at most, and closes the sockets. If queries outlive it, the error is
// context.DeadlineExceeded. Further calls return what the first did.
//
// In a reload, transports that the next server has taken over go on. Stop then waits but shortly for queries in
// flight; they are answered afterwards.
func (s *Server) Stop() error {
	s.telling.Do(func() { close(s.told) })
	if s.generation.successor() == nil {
		// Caddy stops one server after the other: their slow queries would be waited for in turn.
		if s.generation != nil {
			<-s.generation.drain()
		}
		s.drain()
		return s.stopErr
	}
	s.generation.drain()
	done := make(chan error)
	go func() { s.drain(); done <- s.stopErr }()
	select {
	case err := <-done:
		return err
	case <-s.generation.late:
	}
	go func() {
		if err := <-done; err != nil {
			log.Errorf("Stopping %s: %v", s.Addr, err)
		}
	}()
	return nil
}

// datagramTime is how long queries over UDP are taken at most, at the end of the process, while others are answered on
// connections. It leaves those over UDP more than half of the grace period. Only tests change it.
var datagramTime = 2 * time.Second

// drain does what Stop promises, once; it returns when that is done.
//
// At the end of the process plain UDP comes last: clients of connections may keep the process for a while, and nobody
// else answers at the address until the next one begins.
func (s *Server) drain() {
	s.stopOnce.Do(func() {
		defer close(s.drained)
		s.mu.Lock()
		s.stopped = true
		running, passed, spare := s.running, s.passed, s.spare
		s.mu.Unlock()

		// Who comes at the last moment is better served by others: other processes, or other sockets of a reload.
		// Sockets that a service manager has are left as they are: it gives them to the next process.
		s.service().Leaving.Store((s.leaving.Load() || !s.hasSuccessor()) && !systemd.Keeps(s.hostPort()))
		ctx, cancel := context.WithTimeout(context.Background(), s.grace)
		defer cancel()
		connections, datagrams := running, []service.Transport(nil)
		if s.leaving.Load() {
			connections, datagrams = byKind(running)
		}
		var errs [3]error
		var wg sync.WaitGroup
		wg.Go(func() {
			errs[0] = stopAll(ctx, connections)
			s.generation.connectionsStopped()
		})
		if len(datagrams) > 0 {
			s.generation.awaitConnections()
			errs[1] = stopAll(ctx, datagrams)
		}
		wg.Wait()
		errs[2] = s.service().LetGo(ctx, passed)
		for _, c := range spare {
			c.Close()
		}
		if p := s.setPacket(nil); p != nil {
			p.Close()
		}
		log.Sync() // the process may end now
		s.stopErr = errors.Join(errs[:]...)
		if errors.Is(s.stopErr, context.DeadlineExceeded) {
			s.stopErr = context.DeadlineExceeded
		}
	})
}

// byKind parts transports into those with connections and those of plain UDP.
func byKind(all []service.Transport) (connections, datagrams []service.Transport) {
	for _, t := range all {
		if _, ok := t.(*udp.Transport); ok {
			datagrams = append(datagrams, t)
		} else {
			connections = append(connections, t)
		}
	}
	return connections, datagrams
}

// stopAll stops transports at one time, and returns when all have stopped.
func stopAll(ctx context.Context, all []service.Transport) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, t := range all {
		wg.Go(func() { errs[i] = t.Stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// connectionsStopped notes that a server of g, which may be nil, has no connections any more.
func (g *generation) connectionsStopped() {
	if g != nil && g.connected.Add(-1) == 0 {
		close(g.disconnected)
	}
}

// awaitConnections waits until no server of g has any, for datagramTime at most.
func (g *generation) awaitConnections() {
	select {
	case <-g.disconnected:
	case <-time.After(datagramTime):
	}
}
