package etcd

import (
	"fmt"
	"sync"
)

// A copy survives a reload: a configuration that asks the same etcd for the same keys answers from the copy of the one
// before it, until it has read its own. Else names that were known a moment ago would fail while etcd is away.
//
//	old: OnRestart, offers ──▶ new: OnStartup, inherits ──▶ old: OnShutdown, withdraws ──▶ new: has read all, lets go

// offers are those whose configuration is being replaced.
var offers struct {
	sync.Mutex
	all map[*Etcd]struct{}
}

// kin is what two have in common of which one may inherit from the other: who is asked for what, by whom.
func (s *settings) kin() string {
	return fmt.Sprintf("%q", []any{s.endpoints, s.username, s.password, s.tlsFiles, s.etcd.PathPrefix})
}

func (e *Etcd) offer() {
	offers.Lock()
	defer offers.Unlock()
	if offers.all == nil {
		offers.all = map[*Etcd]struct{}{}
	}
	offers.all[e] = struct{}{}
}

func (e *Etcd) withdraw() {
	offers.Lock()
	defer offers.Unlock()
	delete(offers.all, e)
}

// inherit has e, which does not follow changes yet, answer from the copy of one of its kin. Without an offer nothing changes.
func (e *Etcd) inherit() {
	offers.Lock()
	defer offers.Unlock()
	for o := range offers.all {
		if o.kin != e.kin {
			continue
		}
		if v := o.view.known(); v != nil {
			e.view.legacy.Store(v)
			e.lastRev.see(o.lastRev.get())
			return
		}
	}
}

// known is the view that has the copy which v answers from, nil without one.
func (v *view) known() *view {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.ready {
		return v
	}
	return v.legacy.Load()
}
