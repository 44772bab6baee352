package dnsserver

import (
	"runtime"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
)

// attempts knows which configuration was started last. Caddy drops an instance whose start fails in a
// reload without telling it; what its plugins began would go on for ever.
var attempts struct {
	mu   sync.Mutex
	last *attempt
}

// attempt is a configuration that is being started, or was.
type attempt struct {
	instance *caddy.Instance
	begun    bool // all its startup functions have run
	serving  bool // so have its servers

	unopened int           // servers that have not opened all their UDP sockets yet
	opened   chan struct{} // closed when there is none
}

// takeOver is how long sockets are kept for a server that is about to take them, at most.
const takeOver = time.Second

// hasSockets is called by each plain server when it has its UDP sockets.
func (a *attempt) hasSockets() {
	if a == nil {
		return
	}
	attempts.mu.Lock()
	defer attempts.mu.Unlock()
	if a.unopened--; a.unopened == 0 {
		close(a.opened)
	}
}

// awaitNext waits, if another configuration is taking the place of a, until its servers have their sockets.
// What is queued in those that pass to them would be lost otherwise.
func (a *attempt) awaitNext() {
	attempts.mu.Lock()
	next := attempts.last
	wait := a != nil && next != a && next.begun && next.unopened > 0
	attempts.mu.Unlock()
	if !wait {
		return
	}
	select {
	case <-next.opened:
	case <-time.After(takeOver):
	}
}

func (a *attempt) serves() {
	attempts.mu.Lock()
	a.serving = true
	attempts.mu.Unlock()
}

// follow makes the instance of d the last attempt, and lets it end one that fails to take its place.
func (d *dnsContext) follow(servers []caddy.Server) {
	a := &attempt{instance: d.instance, opened: make(chan struct{})}
	for _, s := range servers {
		if _, plain := s.(*Server); plain {
			a.unopened++
		}
	}
	attempts.mu.Lock()
	attempts.last = a
	attempts.mu.Unlock()
	for _, s := range servers {
		s.(server).base().attempt = a
	}
	a.instance.OnStartup = append(a.instance.OnStartup, func() error {
		attempts.mu.Lock()
		defer attempts.mu.Unlock()
		a.begun = true
		return nil
	})
	a.instance.OnRestartFailed = append(a.instance.OnRestartFailed, func() error {
		logDebug(d.debug) // what failed may have changed it
		attempts.mu.Lock()
		failed := attempts.last
		over := failed != a && failed.begun && !failed.serving
		if over {
			attempts.last = a
		}
		attempts.mu.Unlock()
		if over { // what failed may also be the end of this instance
			failed.abandon()
		}
		return nil
	})
}

// abandon ends what the plugins of a began. All of them have: it was a socket that could not be
// opened. Sockets that were opened before that are closed by the collector, as nobody knows them any more.
func (a *attempt) abandon() {
	for _, end := range a.instance.OnShutdown {
		if err := end(); err != nil {
			log.Errorf("Shutting down a configuration that failed to start: %v", err)
		}
	}
	a.instance = nil
	runtime.GC()
}
