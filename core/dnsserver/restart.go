package dnsserver

import (
	"errors"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/caddystate"
	"github.com/coredns/coredns/plugin/pkg/log"

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
	slow      *time.Timer // tells that it takes long
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
	r.slow.Stop()
	return *r
}

// ErrReplaced is the error of a restart of an instance in whose place another one has come meanwhile, by a restart that
// was begun earlier.
var ErrReplaced = errors.New("another configuration has taken the place of this one meanwhile")

// restart is called when another generation is about to take the place of g, before plugins are told. One at a time
// tries that: of two each would take a part of what g has open, and both would serve. What is left of the generation
// before g ends first.
func (g *generation) restart() error {
	g.replacing <- struct{}{}
	if g.isReplaced() {
		g.instance.OnRestartFailed = nil // what they would take back is the next one's
		<-g.replacing
		return ErrReplaced
	}
	g.mu.Lock()
	before := g.previous
	g.mu.Unlock()
	if before != nil {
		before.awaitEnd()
	}
	g.awaitGone()
	// Its servers may have begun to listen just now. What they do not have yet cannot be taken over.
	select {
	case <-g.settled:
	case <-time.After(letGoTime):
	}
	restarting.Lock()
	if restarting.all == nil {
		restarting.all = map[uintptr]*restart{}
	}
	restarting.all[lineage(g.instance)] = &restart{now: g, slow: time.AfterFunc(longRestart, tellSlow)}
	restarting.Unlock()
	g.hooks.Remove()
	g.debug = log.D.Value() // as the configuration says, or somebody has told the process since
	return nil
}

// awaitEnd waits until g has ended. If that takes long somebody wants to know why nothing happens.
func (g *generation) awaitEnd() {
	select {
	case <-g.ended:
		return
	case <-time.After(longEnd):
		log.Warningf("The reload waits: the configuration before this one has not ended yet, as a plugin of it, or a query, takes long")
	}
	<-g.ended
}

const longEnd = 10 * time.Second

// longRestart is after how long a restart is told of that goes on. Only tests change it.
var longRestart = 10 * time.Second

func tellSlow() {
	log.Warningf("The reload takes long: a plugin of the new configuration has not started yet, as it reads much, or a disk or an API does not answer. The old configuration goes on")
}

// replaced lets the next one try to take the place of g, or find that it is taken.
func (g *generation) replaced() {
	select {
	case <-g.replacing:
	default:
	}
}

// restartFailed is called when none took it. Caddy drops an instance whose start fails without telling it, so what its
// plugins began is ended here.
func (g *generation) restartFailed() error {
	g.mu.Lock()
	failed := g.next
	g.mu.Unlock()
	if failed != nil && !failed.isOver() {
		return nil // it serves: this is the end of g, and another plugin's shutdown failed
	}
	defer g.replaced()
	caddystate.ForgetRemoved()
	logDebug(g.debug) // what failed may have changed it
	r := endRestart(g.instance)
	if failed == nil {
		caddystate.ClaimHooks().Remove() // of a configuration that did not come to its begin
		g.hooks.Restore()
		switch {
		case r.next != nil:
			r.next.startupFailed()
		case r.made != nil: // a setup function failed, maybe one that nobody looks at
			r.made.SetupFailed()
		}
		return nil
	}
	failed.hooks.Remove()
	g.hooks.Restore()
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
	for _, s := range failed.servers {
		s.setPredecessor(nil)
	}
	failed.closeSockets()
	failed.endFailed()
	failed.instance = nil
	runtime.GC() // closes its descriptors of our sockets, as nobody knows them any more
	return nil
}

// isOver reports whether g, which was to take another one's place, has not come to serve.
func (g *generation) isOver() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun && !g.serving
}
