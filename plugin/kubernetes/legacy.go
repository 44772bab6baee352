package kubernetes

import (
	"fmt"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin/kubernetes/store"
)

// What is known of a cluster survives a reload while the API is away: a configuration that follows the same objects of
// the same API answers from what the one before it knew, until it has read all there is itself. Else it would answer
// SERVFAIL for names that were known a moment ago.
//
//	old: OnRestart, offers ──▶ new: OnStartup waits for the API in vain, inherits ──▶ old: OnShutdown, withdraws

// offers are the controllers whose configuration is being replaced.
var offers struct {
	sync.Mutex
	all map[*controller]struct{}
}

// kin is what two controllers have in common of which one may inherit from the other: the API, and all that decides
// what is kept of it.
func kin(api string, c store.Config) string {
	c.Log, c.Latency = nil, nil
	return fmt.Sprintf("%q %#v", api, c)
}

func (c *controller) offer() {
	offers.Lock()
	defer offers.Unlock()
	if offers.all == nil {
		offers.all = map[*controller]struct{}{}
	}
	offers.all[c] = struct{}{}
}

func (c *controller) withdraw() {
	offers.Lock()
	defer offers.Unlock()
	delete(offers.all, c)
}

// goOn has the serials of c rise on from those of one that is being replaced and has one of its zones: else a
// secondary might be told of a serial that is older than its own, as serials run ahead of the clock, or the same one though
// the configuration has changed. The first zone counts first, and of several that have it the one whose serial is ahead.
func (c *controller) goOn() {
	offers.Lock()
	defer offers.Unlock()
	for _, zone := range c.zones {
		var before *controller
		for o := range offers.all {
			if slices.Contains(o.zones, zone) && (before == nil || o.Serial(store.Internal) > before.Serial(store.Internal)) {
				before = o
			}
		}
		if before != nil {
			c.GoOn(before.Store)
			return
		}
	}
}

// inherit has c answer from what one of its kin offers, as long as c has not read all. Without an offer nothing changes.
func (c *controller) inherit() {
	if c.Store.HasSynced() {
		return
	}
	offers.Lock()
	defer offers.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shutdown {
		return
	}
	for o := range offers.all {
		if s, complete := o.known(); complete && o.kin == c.kin {
			c.legacy.Store(s)
			c.stopped = make(chan struct{})
			c.wait.Go(c.forget)
			logger.Info("going on with what was known before the reload")
			return
		}
	}
}

// forget lets go of what was inherited when it is of no use any more.
func (c *controller) forget() {
	select {
	case <-c.Synced():
		c.legacy.Store(nil)
	case <-c.stopped:
	}
}

// known is what to answer from, and whether it is all there is.
func (c *controller) known() (s *store.Store, complete bool) {
	if !c.Store.HasSynced() {
		if s := c.legacy.Load(); s != nil {
			return s, true
		}
	}
	return c.Store, c.Store.HasSynced() // it may have synced meanwhile
}
