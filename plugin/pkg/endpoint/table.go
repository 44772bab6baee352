package endpoint

import (
	"net"
	"slices"
	"strings"
	"sync"
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

// open makes l a lease on a server of its address, a new one if there is none that it may share. opened is false if it is one
// already.
func (t *table) open(l *Lease) (addr net.Addr, opened bool, err error) {
	t.mu.Lock()
	if l.server == nil {
		opened = t.join(l)
	}
	if s := l.server; s != nil {
		t.mu.Unlock()
		return s.addr(), opened, nil
	}
	t.mu.Unlock()

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

// join makes l a lease on a server that is open, if there is one that it may share.
func (t *table) join(l *Lease) bool {
	for _, s := range t.servers {
		if s.key != (key{l.spec.Addr, l.spec.WebConfig}) {
			continue
		}
		inherited := slices.ContainsFunc(t.replaced, s.held)
		if !s.held(l.owner) && !inherited && strings.HasSuffix(l.spec.Addr, ":0") {
			continue // any port is another port for every instance
		}
		t.enter(l, s, inherited)
		return true
	}
	return false
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
	t.mu.Lock()
	if !slices.Contains(t.replaced, owner) {
		t.mu.Unlock()
		return // it was replaced all the same, or another lease of it was told before
	}
	var over ending
	for _, s := range slices.Clone(t.servers) {
		for _, l := range slices.Clone(s.leases) {
			if l.heirOf == owner {
				t.leave(l, &over)
			}
		}
	}
	t.settle(owner)
	t.mu.Unlock()
	over.run()
}

// handOver ends l if its owner is being replaced.
func (t *table) handOver(l *Lease) {
	t.mu.Lock()
	if !slices.Contains(t.replaced, l.owner) {
		t.mu.Unlock()
		return
	}
	var over ending
	t.leave(l, &over)
	if !slices.ContainsFunc(t.servers, func(s *server) bool { return s.held(l.owner) }) {
		t.settle(l.owner)
	}
	t.mu.Unlock()
	over.run()
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
	var over ending
	t.mu.Lock()
	t.leave(l, &over)
	t.mu.Unlock()
	over.run()
}

// leave ends l. If it was the last lease on its server, that is taken out of the table.
func (t *table) leave(l *Lease, over *ending) {
	s := l.server
	if s == nil {
		return
	}
	l.server, l.heirOf = nil, nil
	over.leases = append(over.leases, l)
	s.remove(l)
	if len(s.leases) == 0 {
		t.servers = slices.DeleteFunc(t.servers, func(o *server) bool { return o == s })
		over.servers = append(over.servers, s)
	}
}

// ending is what ends when the lock has been given back.
type ending struct {
	leases  []*Lease
	servers []*server
}

func (e *ending) run() {
	for _, l := range e.leases {
		if l.spec.Closed != nil {
			l.spec.Closed()
		}
	}
	var wg sync.WaitGroup
	for _, s := range e.servers {
		wg.Go(s.stop)
	}
	wg.Wait()
}
