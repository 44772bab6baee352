package dnsserver

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/caddystate"
	"github.com/coredns/coredns/core/internal/udp"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
)

// generation is one configuration at work, from its start to its end: its servers and its plugins.
//
//	start   plugins' OnStartup ──▶ servers listen, and take over what those of the generation before have open
//	reload  servers of the next generation listen ──▶ queries that ours have begun end ──▶ plugins' OnShutdown
//	end     OnFinalShutdown, such as health's lameduck ──▶ servers stop ──▶ plugins' OnShutdown
//
// So a query is answered as ever as long as a server listens. Caddy alone would end the plugins first when the
// process is to end, and what has to be forwarded would find its upstream closed.
type generation struct {
	instance *caddy.Instance
	servers  []*Server
	plugins  []func() error // their OnShutdown
	ends     *ends          // what has to end after that
	debug    bool           // debug lines are logged, as a restart begins
	hooks    caddystate.Hooks
	setUp    caddystate.Hooks // those that there were when it was set up; of a reload only

	announced sync.Once // that all servers listen

	// The end of the process that has handed over its sockets, nil if there was none: for who waits for a socket, and
	// for who can wait longer.
	giver, gone <-chan struct{}

	replacing chan struct{} // holds what a restart that is under way has put there

	draining sync.Once
	drained  chan struct{} // closed when no query of ours is in flight, or the grace period is over
	late     chan struct{} // closed reloadTime after it was begun to wait for that
	ending   sync.Once

	connected    atomic.Int32  // servers whose connections have not been stopped
	disconnected chan struct{} // closed when there are none
	ended        chan struct{} // closed when the plugins are shut down

	mu        sync.Mutex
	previous  *generation // whose place this one takes; nil once that has ended
	next      *generation // that takes this one's place; nil once this one has ended
	begun     bool        // all startup functions have run
	serving   bool        // a server has begun to serve
	unopened  int         // calls of Serve and ServePacket that may take over a transport yet
	opened    chan struct{}
	unsettled int // those that have not got any yet
	settled   chan struct{}
	listened  map[string]bool // addresses, see fresh
	sockets   []io.Closer     // that were opened, until a server begins to serve
}

const (
	// takeOverTime is how long the servers of a generation wait at most until those of the next one have what they
	// take over.
	takeOverTime = time.Second
	// reloadTime is how long a reload waits at most for queries of the old configuration. They are answered
	// afterwards, too.
	reloadTime = 100 * time.Millisecond
)

// newGeneration makes the servers of d a generation.
func (d *dnsContext) newGeneration(servers []server) {
	g := &generation{
		instance: d.instance, plugins: d.instance.OnShutdown, ends: &d.ends,
		drained: make(chan struct{}), late: make(chan struct{}), ended: make(chan struct{}), opened: make(chan struct{}),
		disconnected: make(chan struct{}), settled: make(chan struct{}), replacing: make(chan struct{}, 1),
	}
	g.connected.Store(int32(len(servers)))
	for _, s := range servers {
		g.servers = append(g.servers, s.base())
		s.base().generation = g
		g.unopened += 2
		g.unsettled += 2
	}
	i := d.instance
	i.OnShutdown = []func() error{g.shutdown}
	i.OnStartup = append(i.OnStartup, g.begin)
	i.OnRestart = slices.Insert(i.OnRestart, 0, g.restart)
	i.OnRestartFailed = append(i.OnRestartFailed, g.restartFailed)
	i.OnFinalShutdown = append(i.OnFinalShutdown, g.finalShutdown)
	restarting.Lock()
	defer restarting.Unlock()
	if r := restarting.all[lineage(i)]; r != nil {
		r.next, g.setUp = g, caddystate.RegisteredHooks()
		return
	}
	if d.once {
		return // it goes without what does not start
	}
	i.OnFirstStartup, i.OnStartup = g.watched(i.OnFirstStartup), g.watched(i.OnStartup)
}

// begin is the last of the startup functions.
func (g *generation) begin() error {
	for _, s := range g.servers {
		s.countFromZero()
	}
	old := endRestart(g.instance).now
	g.plugins = append(g.plugins, g.registeredLate()...)
	g.setUp.Reinstate()
	g.mu.Lock()
	g.begun, g.previous, g.hooks = true, old, caddystate.ClaimHooks()
	g.mu.Unlock()
	if old == nil {
		if caddy.IsUpgrade() {
			g.closeUnclaimed()
			g.openEarly()
			g.expectPackets()
			g.giver, g.gone = untilAnotherParent(letGoTime), untilAnotherParent(goneTime)
		}
		return nil
	}
	old.mu.Lock()
	old.next = g
	old.mu.Unlock()
	before := map[string]*Server{}
	for _, o := range old.servers {
		before[o.Address()] = o
	}
	for _, s := range g.servers {
		if o := before[s.Address()]; o != nil { // as caddy hands over the sockets
			s.setPredecessor(o)
		}
	}
	return nil
}

// hasSuccessor reports whether a server of the next generation has the sockets of s. Without a next one nobody knows.
func (s *Server) hasSuccessor() bool {
	if s.generation == nil {
		return true
	}
	s.generation.mu.Lock()
	next := s.generation.next
	s.generation.mu.Unlock()
	return next == nil || slices.ContainsFunc(next.servers, func(n *Server) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.predecessor == s
	})
}

// registeredLate is the shutdown functions that startup functions have registered, and so those of plugins that have
// begun. They are the generation's from then on, as those that were registered before.
func (g *generation) registeredLate() []func() error {
	all := g.instance.OnShutdown
	g.instance.OnShutdown = all[:1:1] // g.shutdown
	return all[1:]
}

// openEarly opens the sockets that servers open beside those that another process hands over, see udp.OpenEarly. That
// process has its sockets leave as soon as this one has started, and servers may begin to serve after that.
func (g *generation) openEarly() {
	for _, s := range g.servers {
		if s.hasExtraSockets() {
			udp.OpenEarly(s.hostPort())
		}
	}
	go func() {
		<-g.opened
		udp.DropUnused()
	}()
}

// serving is called by Serve and ServePacket at once. They call opened when they have their transport, or need
// none, and over before they return: who waits for them, as programs do, thinks that the process may end then. So over
// waits for the queries that are at work. Who has to wait until the server before has let go of its socket calls passed
// before: that one waits, too, until nothing is taken over from it any more.
func (s *Server) serving() (passed, opened, over func()) {
	g := s.generation
	if g == nil {
		return func() {}, func() {}, s.overWhenDrained
	}
	passed = sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.serving, g.sockets = true, nil
		if g.unopened--; g.unopened == 0 {
			close(g.opened)
		}
	})
	opened = sync.OnceFunc(func() {
		passed()
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.unsettled--; g.unsettled == 0 {
			close(g.settled)
		}
	})
	return passed, opened, func() {
		opened()
		s.overWhenDrained()
		if s.leaving.Load() {
			<-s.told
		}
	}
}

// overWhenDrained waits until a server that is being stopped has answered its queries.
func (s *Server) overWhenDrained() {
	if s.isStopped() {
		<-s.drained
	}
}

// nothingToServe is Serve or ServePacket of a server that has no such socket.
func (s *Server) nothingToServe() error {
	_, opened, over := s.serving()
	opened()
	over()
	return nil
}

// successor is the generation that has taken the place of g, nil if none has. It has opened all that it takes over,
// unless that takes too long. g may be nil.
func (g *generation) successor() *generation {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	next := g.next
	g.mu.Unlock()
	if next == nil {
		return nil
	}
	select {
	case <-next.opened:
	case <-time.After(takeOverTime):
	}
	return next
}

// drain has all servers of g stop, and returns the channel that is closed when they have.
func (g *generation) drain() <-chan struct{} {
	g.draining.Do(func() {
		var wg sync.WaitGroup
		for _, s := range g.servers {
			wg.Go(s.drain)
		}
		go func() {
			wg.Wait()
			g.awaitGiver()
			close(g.drained)
		}()
		time.AfterFunc(reloadTime, func() { close(g.late) })
	})
	return g.drained
}

// shutdown stands for the OnShutdown of all plugins. In a reload the servers have been stopped, and queries that
// take long may still be in flight.
func (g *generation) shutdown() error {
	for _, s := range g.servers {
		if !s.isTold() {
			return nil // the process is to end: finalShutdown sees to it
		}
	}
	g.mu.Lock()
	next := g.next
	g.mu.Unlock()
	defer g.replaced()
	next.announce() // caddy calls OnStartupComplete for the first generation only
	if next != nil {
		next.setUp.Reinstate()
	}
	select {
	case <-g.drain():
		g.endReplaced()
	case <-g.late:
		go func() {
			<-g.drained
			g.endReplaced()
		}()
	}
	return nil
}

// endReplaced is endPlugins when another configuration serves. An error is logged: to Caddy it would be the reload
// that has failed. Nobody would be told of the new configuration, nor would that look at its Corefile.
func (g *generation) endReplaced() {
	if err := g.endPlugins(); err != nil {
		log.Errorf("Shutting down a configuration that was replaced: %v", err)
	}
}

// finalShutdown is the last of its kind. It stops the servers, and then the plugins.
func (g *generation) finalShutdown() error {
	g.mu.Lock()
	before := g.previous
	g.mu.Unlock()
	if before != nil {
		<-before.ended
	}
	for _, s := range g.servers {
		s.leaving.Store(true)
	}
	<-g.drain()
	return g.endPlugins()
}

// endPlugins calls the OnShutdown of all plugins, once. It comes to its end, whatever becomes of them: the next reload
// and the end of the process wait for it.
func (g *generation) endPlugins() (err error) {
	g.ending.Do(func() {
		g.ends.begin()
		deadline := time.Now().Add(endTime)
		for _, end := range g.plugins {
			err = errors.Join(err, endBy(deadline, end))
		}
		err = errors.Join(err, g.ends.run(deadline))
		if next := g.successor(); next != nil {
			next.forget(g)
		}
		close(g.ended)
		// Whoever holds g for long, such as a connection that nobody has closed, does not hold all that came after it.
		g.mu.Lock()
		g.next = nil
		g.mu.Unlock()
	})
	return err
}

// isReplaced reports whether another generation has taken the place of g, or is about to.
func (g *generation) isReplaced() bool {
	g.mu.Lock()
	next := g.next
	g.mu.Unlock()
	if next != nil {
		return true
	}
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// forget drops what is known of old, which has ended.
func (g *generation) forget(old *generation) {
	g.mu.Lock()
	g.previous = nil
	g.mu.Unlock()
	for _, s := range g.servers {
		s.setPredecessor(nil)
	}
}
