package nomad

import (
	"fmt"
	"slices"
	"sync"
)

// What is known of services survives a reload: a configuration that asks the same agents for the same goes on with what
// the one before it knows. Else services that were known a moment ago would be gone while the agents are away.
//
//	old: OnRestart, offers ──▶ new: OnStartup, inherits ──▶ old: OnShutdown, withdraws

// offers are those whose configuration is being replaced.
var offers struct {
	sync.Mutex
	all []*Nomad
}

// kin is what two have in common of which one may inherit from the other.
func (s *settings) kin() string {
	return fmt.Sprintf("%q", []any{s.zone, s.addresses, s.filter, s.token})
}

func (n *Nomad) offer() {
	offers.Lock()
	defer offers.Unlock()
	offers.all = append(offers.all, n)
}

func (n *Nomad) withdraw() {
	offers.Lock()
	defer offers.Unlock()
	offers.all = slices.DeleteFunc(offers.all, func(o *Nomad) bool { return o == n })
}

// inherit has n go on with what one of its kin knows, from whom nobody else inherits then.
func (n *Nomad) inherit() {
	offers.Lock()
	defer offers.Unlock()
	i := slices.IndexFunc(offers.all, func(o *Nomad) bool { return o.kin == n.kin })
	if i < 0 {
		return
	}
	old := offers.all[i]
	offers.all = slices.Delete(offers.all, i, i+1)
	n.catalog.adopt(old.catalog)
	n.agents.current.Store(old.agents.current.Load())
	if old.agents.answered.Load() {
		n.agents.answered.Store(true)
	}
}

// adopt follows the services that old follows, after a pause in which old ends: agents would have twice the
// connections else.
func (c *catalogue) adopt(old *catalogue) {
	old.mu.Lock()
	defer old.mu.Unlock()
	c.see(old.index.Load())
	for k, e := range old.entries {
		index := e.index.Load() // before the instances, which may be newer
		c.follow(k, newEntry(*e.instances.Load(), index, e.used.Load()), true)
	}
}
