// Package udp serves the UDP sockets of one address, in batches: a loop for each processor receives, has queries
// answered in the wire lane, and sends.
//
//	socket ──receive──▶ loop.batch ──▶ wire lane ──Done──▶ answer ──send──▶ socket
//	                        ├── held: handlers inline, when the batch is over (message.go)
//	                        └── later: a worker, or parked (source.go) ──▶ sendQueue ──▶ socket
//
// On Linux a socket reads and writes by recvmmsg and sendmmsg (batched_linux.go), and reads the sockets of
// upstreams by turns with its own (upstreams_linux.go); elsewhere, and for what is no plain UDP socket, one packet
// at a time (portable.go). What comes on network interfaces is read past the kernel if that is asked for
// (direct_linux.go). Of a batch, large tables are told before it is their turn (ahead.go). Start at loop.batch.
package udp

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/proxyproto"

	"github.com/miekg/dns"
)

// Consolidate says whether one loop serves an address while it keeps up, where the system has means for that; the
// flag -dns.consolidate sets it.
var Consolidate = true

// MaxQuery is the longest query that is read over UDP, in octets.
const MaxQuery = 65535

// Options are what a listener has configured.
type Options struct {
	One      bool                   // socket for the address: others have theirs
	Others   bool                   // of other processes have theirs, as one that is about to end
	Decorate dns.DecorateWriter     // sees each reply; nil for none
	Proxy    *proxyproto.PacketConn // reads PROXY headers; nil if there are none
	Shed     bool                   // replies that a socket does not take are not waited for
	Direct   []string               // network interfaces whose queries are read past the kernel; see directSocket
	// Saturated counts sockets with as many unsent replies as there may be; see Shed.
	Saturated *atomic.Int32
}

// Transport serves the UDP sockets of one address: one reader each, which serves what does not wait, and
// the workers of the process for all else.
type Transport struct {
	Options
	service *service.Service
	sockets []batchSocket // of the kernel
	later   []string      // of Direct, those that another process has as yet
	inline  exec.Inline

	troubled log.Seldom // lines about errors of reading

	mu      sync.Mutex
	direct  []batchSocket // of network interfaces; guarded by mu, as some may come later
	loops   []*loop       // guarded by mu
	leaving bool          // no more sockets are to come; guarded by mu

	stopping atomic.Bool
	reading  sync.WaitGroup
	done     chan struct{} // closed when no socket is read any more
	handed   *extraSockets // nil if there is but one socket
}

// takesWire reports whether queries may take the wire lane. They may not where a decorator is to see all replies, each
// written by a writer of its own.
func (t *Transport) takesWire() bool { return t.service.Wire && t.Decorate == nil }

// New makes a Transport for queries that come on p. If p is a plain UDP socket that nobody wraps, further sockets
// at its address are opened, so that there is one for each core.
func New(s *service.Service, p net.PacketConn, o Options) *Transport {
	t := &Transport{Options: o, service: s, done: make(chan struct{})}
	if conn, plain := p.(*net.UDPConn); plain && t.Decorate == nil {
		t.open(conn)
		t.openDirect()
	}
	if len(t.sockets) == 0 {
		if t.Proxy != nil {
			p = t.Proxy
			t.Proxy = nil
		}
		t.sockets = []batchSocket{newPortableSocket(p)}
	}
	return t
}

// Serve serves queries until the transport is stopped.
func (t *Transport) Serve() {
	t.mu.Lock()
	t.read(t.sockets)
	t.read(t.direct)
	t.mu.Unlock()
	t.openLater()
	t.reading.Wait()
	close(t.done)
}

// read begins to read sockets. mu is held.
func (t *Transport) read(sockets []batchSocket) {
	t.reading.Add(len(sockets))
	for _, sock := range sockets {
		l := &loop{Transport: t, sock: sock, ended: t.reading.Done}
		l.lead = exec.Lead{Run: l.run, Inflight: &l.inflight, Inline: &t.inline}
		t.loops = append(t.loops, l)
		l.begin()
		go l.run()
	}
}

// readToo begins to read more sockets of network interfaces. It reports false if there are to be no more.
func (t *Transport) readToo(sockets []batchSocket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leaving {
		return false
	}
	t.direct = append(t.direct, sockets...)
	t.read(sockets)
	return true
}

// all is all sockets, those of the kernel first.
func (t *Transport) all() []batchSocket {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Concat(t.sockets, t.direct)
}

// leaveTime is how long the kernel may still queue a datagram for a socket that gets no more: what it had begun
// with, on a machine that does not run all the time, too.
const leaveTime = 20 * time.Millisecond

// leave has those sockets leave that nobody else has, and reports whether there are any. Of the one that was given the
// service knows whether it is such a one; those of network interfaces are.
func (t *Transport) leave() (left bool) {
	last := t.quit()
	for i, sock := range t.all() {
		if i == 0 && t.service.Leaving.Load() || i > 0 && last || i >= len(t.sockets) {
			sock.leave()
			left = true
		}
	}
	return left
}

// quit notes that t reads no more soon, and reports whether nobody else reads its further sockets.
func (t *Transport) quit() (last bool) {
	t.mu.Lock()
	before := t.leaving
	t.leaving = true
	t.mu.Unlock()
	return !before && t.handed.quit()
}

// Close closes all sockets of a transport that does not serve.
func (t *Transport) Close() {
	t.quit()
	for _, sock := range t.all() {
		sock.close()
	}
	t.handed.giveUp()
}

// Stop lets the loops take what is queued, waits for the queries in flight, and closes the sockets. Before that,
// sockets that no other server of the process has get no more datagrams: those would be lost that come between the
// last look and the end.
func (t *Transport) Stop(ctx context.Context) error {
	if t.leave() {
		time.Sleep(leaveTime)
	}
	t.stopping.Store(true)
	for _, sock := range t.all() {
		sock.wake()
	}
	defer t.Close()
	<-t.done
	t.mu.Lock()
	loops := t.loops
	t.mu.Unlock()
	for _, l := range loops {
		select {
		// The sockets are open until then, for their replies.
		case <-l.inflight.Drained():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
