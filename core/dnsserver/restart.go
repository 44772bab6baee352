package dnsserver

import (
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/coredns/caddy"
)

// This file pairs the generation that is restarted with the one that is to take its place, and says what becomes of
// both if that fails.

// restarting is what caddy restarts now, by lineage.
var restarting struct {
	sync.Mutex
	all map[uintptr]*restart
}

// restart is the generation whose instance is restarted; the configuration that is to take its place, and the
// generation that it becomes, once its servers are made, until it begins.
type restart struct {
	now, next *generation
	made      *dnsContext
}

// lineage is the same for an instance and those that take its place: caddy has them share what counts their servers. A
// process may have several instances, and restart them at one time.
func lineage(i *caddy.Instance) uintptr {
	if wg := reflect.ValueOf(i).Elem().FieldByName("wg"); wg.IsValid() {
		return wg.Pointer()
	}
	return 0
}

// endRestart forgets the restart of an instance, and returns what is known of it, empty if there is none.
func endRestart(i *caddy.Instance) restart {
	restarting.Lock()
	defer restarting.Unlock()
	at := lineage(i)
	r := restarting.all[at]
	delete(restarting.all, at)
	if r == nil {
		return restart{}
	}
	return *r
}

// restart is called when another generation is about to take the place of g. What is left of the one before g ends
// first.
func (g *generation) restart() error {
	g.mu.Lock()
	before := g.previous
	g.mu.Unlock()
	if before != nil {
		<-before.ended
	}
	// Its servers may have begun to listen just now. What they do not have yet cannot be taken over.
	select {
	case <-g.settled:
	case <-time.After(letGoTime):
	}
	restarting.Lock()
	if restarting.all == nil {
		restarting.all = map[uintptr]*restart{}
	}
	restarting.all[lineage(g.instance)] = &restart{now: g}
	restarting.Unlock()
	g.hooks.remove()
	return nil
}

// restartFailed is called when none took it. Caddy drops an instance whose start fails without telling it, so what its
// plugins began is ended here.
func (g *generation) restartFailed() error {
	logDebug(g.debug) // what failed may have changed it
	r := endRestart(g.instance)
	g.mu.Lock()
	failed := g.next
	g.mu.Unlock()
	if failed == nil {
		claimHooks().remove() // of a configuration that did not come to its begin
		g.hooks.restore()
		switch {
		case r.next != nil:
			r.next.startupFailed()
		case r.made != nil: // a setup function failed, maybe one that nobody looks at
			r.made.SetupFailed()
		}
		return nil
	}
	failed.mu.Lock()
	over := failed.begun && !failed.serving
	failed.mu.Unlock()
	if !over {
		return nil // it serves: this is the end of g, and another plugin's shutdown failed
	}
	failed.hooks.remove()
	g.hooks.restore()
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
	for _, s := range failed.servers {
		s.setPredecessor(nil)
	}
	failed.endFailed()
	failed.instance = nil
	runtime.GC() // closes the sockets that it opened, as nobody knows them any more
	return nil
}
