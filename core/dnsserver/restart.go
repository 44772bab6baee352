package dnsserver

import (
	"runtime"
	"sync"

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
}

func (a *attempt) serves() {
	attempts.mu.Lock()
	a.serving = true
	attempts.mu.Unlock()
}

// follow makes the instance of d the last attempt, and lets it end one that fails to take its place.
func (d *dnsContext) follow(servers []caddy.Server) {
	a := &attempt{instance: d.instance}
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
