package endpoint

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// all is the table of the process.
var all table

// table has the servers that are open and knows which instances are being replaced. What opens and closes sockets
// happens outside of its lock.
type table struct {
	mu       sync.Mutex
	servers  []*server
	replaced []any // owners between Restarting and Shutdown or RestartFailed
}

// open makes l a lease on a server of its address, a new one if there is none that it may share. opened is false if
// it is one already.
func (t *table) open(l *Lease) (addr net.Addr, opened bool, err error) {
	t.mu.Lock()
	if l.server == nil {
		opened, err = t.join(l)
	}
	joined := l.server
	t.mu.Unlock()
	switch {
	case err != nil:
		return nil, false, err
	case joined != nil:
		if opened && joined.key.webConfig != l.spec.WebConfig {
			log.Warningf("Endpoint %s: of two web configurations the first one counts, %q, and not %q", l.spec.Addr, joined.key.webConfig, l.spec.WebConfig)
		}
		return joined.addr(), opened, nil
	}
	s, err := newServer(l.spec.Addr, l.spec.WebConfig)
	if err != nil {
		return nil, false, err
	}
	t.mu.Lock()
	t.servers = append(t.servers, s)
	t.enter(l, s, false)
	t.mu.Unlock()
	s.start()
	return s.addr(), true, nil
}

// join makes l a lease on a server that is open, if there is one that it may share: the one of its own instance that
// has the address, else one that its instance takes over. It fails if that one has another web configuration and does
// not serve already what l wants served.
func (t *table) join(l *Lease) (joined bool, err error) {
	for _, s := range t.servers {
		if s.key.addr != l.spec.Addr || !s.held(l.owner) {
			continue
		}
		if s.key.webConfig != l.spec.WebConfig && !s.serves(l.owner, l.spec.Handlers) {
			return false, fmt.Errorf("%s is served with another web configuration: %q", l.spec.Addr, s.key.webConfig)
		}
		t.enter(l, s, slices.ContainsFunc(t.replaced, s.held))
		return true, nil
	}
	for _, s := range t.servers {
		if s.key != (key{l.spec.Addr, l.spec.WebConfig}) || s.lost() {
			continue
		}
		inherited := slices.ContainsFunc(t.replaced, s.held)
		if !inherited && strings.HasSuffix(l.spec.Addr, ":0") {
			continue // any port is another port for every instance
		}
		t.enter(l, s, inherited)
		return true, nil
	}
	return false, nil
}

// enter makes l a lease on s.
func (t *table) enter(l *Lease, s *server, waits bool) {
	l.server = s
	if n := len(t.replaced); n > 0 {
		l.heirOf = t.replaced[n-1]
	}
	s.add(l, waits)
}

func (t *table) restarting(owner any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.replaced, owner) {
		t.replaced = append(t.replaced, owner)
	}
}

// restartFailed ends the leases that were opened while owner was being replaced.
func (t *table) restartFailed(owner any) {
	t.conclude(owner, func(l *Lease) bool { return l.heirOf == owner })
}

// handOver ends all leases of owner at once, if it is being replaced: those that waited take over with all their paths.
func (t *table) handOver(owner any) {
	t.conclude(owner, func(l *Lease) bool { return l.owner == owner })
}

// conclude ends those leases that are over now that it is settled whether owner is replaced. It does nothing if
// that has been settled before, as by another lease of the same owner.
func (t *table) conclude(owner any, over func(*Lease) bool) {
	t.mu.Lock()
	e := ending{reload: true}
	if slices.Contains(t.replaced, owner) {
		for _, s := range t.servers {
			for _, l := range s.leases {
				if over(l) {
					e.leases = append(e.leases, l)
				}
			}
		}
		t.end(&e)
		t.settle(owner)
	}
	t.mu.Unlock()
	e.run()
}

// settle notes that owner is not being replaced any more.
func (t *table) settle(owner any) {
	t.replaced = slices.DeleteFunc(t.replaced, func(o any) bool { return o == owner })
	for _, s := range t.servers {
		for _, l := range s.leases {
			if l.heirOf == owner {
				l.heirOf = nil
			}
		}
	}
}

func (t *table) close(l *Lease) {
	t.mu.Lock()
	var e ending
	if l.server != nil {
		e.leases = append(e.leases, l)
		t.end(&e)
	}
	t.mu.Unlock()
	e.run()
}

// end ends leases, and takes servers that have none any more out of the table. The others learn of it when all is
// done, so that no request meets an instance of which a part has gone.
func (t *table) end(e *ending) {
	for _, l := range e.leases {
		l.server, l.heirOf = nil, nil
	}
	for _, s := range t.servers {
		before := len(s.leases)
		if before <= len(e.leases) && s.mux.Load() == nil { // requests at work may be all that is left
			s.route()
		}
		switch s.remove(); len(s.leases) {
		case before: // not concerned
		case 0:
			e.servers = append(e.servers, s)
		default:
			s.mux.Store(nil)
		}
	}
	t.servers = slices.DeleteFunc(t.servers, func(s *server) bool { return len(s.leases) == 0 })
}

// ending is what ends when the lock has been given back.
type ending struct {
	leases  []*Lease
	servers []*server
	reload  bool // the process goes on
}

func (e *ending) run() {
	for _, l := range e.leases {
		if l.spec.Closed != nil {
			l.spec.Closed()
		}
	}
	var wg sync.WaitGroup
	for _, s := range e.servers {
		if e.reload && s.long {
			wg.Go(s.leave)
		} else {
			wg.Go(s.stop)
		}
	}
	wg.Wait()
}
