package secondary

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// What a replica has survives a reload: the one of the same zone begins with it. Else it would have to be fetched again,
// and there would be nothing to serve until then, or until a primary is there again.
//
//	old: OnRestart, offers ──▶ new: OnStartup, inherits ──▶ run looks at the primaries at once ──▶ old: OnShutdown, withdraws
//
// From when it is inherited on, only the heir looks at primaries, and stores what they have; the old one passes
// notifications on to it, and answers as long as it has to from what the heir gets. So none of the two goes back behind
// the other.
//
// If both have no primary in common, serials of one say nothing of the other's: what was inherited is served until the
// zone has come from the new primaries, whatever its serial. See source.borrowed.

// legacy is a replica that has something. What that is, is asked late: until it is inherited it goes on to look.
type legacy struct {
	owner   *roster
	replica *replica
}

// version is what the replica has, nil if that is nothing, or has expired.
func (l legacy) version() (v *zone.Zone, expires time.Time) {
	v, expires = l.replica.zone.Current(), timeOf(&l.replica.times.expires)
	if !l.replica.rooms.now().Before(expires) {
		return nil, expires
	}
	return v, expires
}

// offers are those of rosters that are being replaced, by the names of zones: several, if several server blocks have the
// same zone.
var offers struct {
	sync.Mutex
	all map[string][]legacy
}

// offer makes what the replicas have the next ones'.
func (r *roster) offer() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	offers.Lock()
	defer offers.Unlock()
	if offers.all == nil {
		offers.all = map[string][]legacy{}
	}
	for _, z := range r.replicas {
		l := legacy{r, z}
		if v, _ := l.version(); v != nil {
			offers.all[z.name()] = append(offers.all[z.name()], l)
		}
	}
}

// withdraw ends the offers of a roster. If nobody takes its place after all, its replicas look at their primaries again.
func (r *roster) withdraw(failed bool) {
	r.takeBack()
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, z := range r.replicas {
		z.part(failed)
	}
}

// takeBack takes the offers of a roster back. The roster is not locked meanwhile: who adds a zone to it, as a catalog does
// at any time, locks it first and then the offers.
func (r *roster) takeBack() {
	offers.Lock()
	defer offers.Unlock()
	for name, all := range offers.all {
		all = slices.DeleteFunc(all, func(l legacy) bool { return l.owner == r })
		if offers.all[name] = all; len(all) == 0 {
			delete(offers.all, name)
		}
	}
}

// part ends what a replica has to do with its heir.
func (r *replica) part(alone bool) {
	r.mu.Lock()
	heir := r.heir
	if alone {
		r.heir = nil
	}
	r.mu.Unlock()
	if heir != nil {
		heir.mu.Lock()
		heir.elder = nil
		heir.mu.Unlock()
	}
}

// take is what a replica may inherit, once: that of one with the same source, or a related one, or else what there is, if
// there is no doubt that it is the same zone: views may have several of one name, and what one shows is not for the
// others.
func (r *replica) take() (l legacy, ok bool) {
	offers.Lock()
	defer offers.Unlock()
	name := r.name()
	all := offers.all[name]
	i := slices.IndexFunc(all, func(l legacy) bool { return l.replica.source.same(r.source) })
	if i < 0 {
		i = slices.IndexFunc(all, func(l legacy) bool { return l.replica.source.related(r.source) })
	}
	if i < 0 && len(all) == 1 && (r.alone == nil || r.alone(name)) {
		i = 0
	}
	if i < 0 {
		return legacy{}, false
	}
	l = all[i]
	if offers.all[name] = slices.Delete(slices.Clone(all), i, i+1); len(all) == 1 {
		delete(offers.all, name)
	}
	return l, true
}

// inherit serves what the replica before had, if there was one, as long as that would have.
func (r *replica) inherit() {
	if r.zone.Current() != nil {
		return
	}
	l, ok := r.take()
	if !ok {
		return
	}
	if err := r.inheritFrom(l); err != nil {
		l.replica.part(true)
		slog.Warningf("Zone %s: what was served before the reload is of no use: %v", r.name(), err)
	}
}

func (r *replica) inheritFrom(l legacy) error {
	elder := l.replica
	elder.mu.Lock()
	elder.heir = r // what it has changes no more
	elder.mu.Unlock()
	v, expires := l.version()
	if v == nil { // it has expired meanwhile
		elder.part(true)
		return nil
	}
	if err := r.carryOn(v, expires, elder.source); err != nil || r.borrowed.Load() {
		return err
	}
	r.mu.Lock()
	r.elder = elder
	r.mu.Unlock()
	return nil
}

// carryOn serves what another replica, with a source of its own, would have served until it expires.
func (r *replica) carryOn(v *zone.Zone, expires time.Time, from *source) error {
	if r.source.zonemd {
		if err := v.VerifyDigest(); err != nil && !errors.Is(err, zone.ErrNoDigest) {
			return err
		}
	}
	var p fetch.Plan
	p.Good(v, expires)
	at := expires.Add(-p.Expire)
	if from.related(r.source) {
		return r.serve(v, at)
	}
	return r.borrow(v, at)
}

// follow serves what the heir has got.
func (r *replica) follow(v *zone.Zone, expires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heir != nil {
		r.times.expires.Store(expires.UnixNano())
		r.zone.Replace(v)
	}
}

// isInherited reports whether another replica looks at the primaries now.
func (r *replica) isInherited() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heir != nil
}
