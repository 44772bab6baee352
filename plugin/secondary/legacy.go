package secondary

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// What a replica has survives a reload: one of the same zone, with the same primaries, begins with it. Else it would
// have to be fetched again, and there would be nothing to serve until then, or until a primary is there again.
//
//	old: OnRestart, offers ──▶ new: OnStartup, inherits ──▶ run looks at the primaries at once ──▶ old: OnShutdown, withdraws

// legacy is a replica that has something. What that is, is asked late: until it is stopped it goes on to look.
type legacy struct {
	owner   *roster
	replica *replica
}

// version is what the replica has, nil if that is nothing, or has expired.
func (l legacy) version() (v *zone.Zone, expires time.Time) {
	v, expires = l.replica.zone.Current(), timeOf(&l.replica.times.expires)
	if !time.Now().Before(expires) {
		return nil, expires
	}
	return v, expires
}

// offers are those of rosters that are being replaced, by what the replicas call their kin: several, if several server
// blocks have the same zone from the same primaries.
var offers struct {
	sync.Mutex
	all map[string][]legacy
}

// kin is what two replicas have in common of which one may inherit from the other: the zone, and all that decides
// whose data it takes.
func (r *replica) kin() string {
	s := r.source
	key, server := "", ""
	if s.key != nil {
		key = s.key.Name + " " + s.key.Algorithm
	}
	if s.tls != nil {
		server = s.tls.ServerName
	}
	return fmt.Sprintf("%q %q %v %q %t %q %t %v", r.name(), s.primaries, s.secure, key, s.tls != nil, server, s.zonemd, s.limits)
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
			kin := z.kin()
			offers.all[kin] = append(offers.all[kin], l)
		}
	}
}

// withdraw ends the offers of a roster.
func (r *roster) withdraw() {
	offers.Lock()
	defer offers.Unlock()
	for kin, all := range offers.all {
		all = slices.DeleteFunc(all, func(l legacy) bool { return l.owner == r })
		if offers.all[kin] = all; len(all) == 0 {
			delete(offers.all, kin)
		}
	}
}

// take is what a replica of such kin has offered, once.
func take(kin string) (l legacy, ok bool) {
	offers.Lock()
	defer offers.Unlock()
	all := offers.all[kin]
	if len(all) == 0 {
		return legacy{}, false
	}
	if offers.all[kin] = all[1:]; len(all) == 1 {
		delete(offers.all, kin)
	}
	return all[0], true
}

// inherit serves what the replica before had, if there was one, as long as that would have.
func (r *replica) inherit() {
	if r.zone.Current() != nil {
		return
	}
	l, ok := take(r.kin())
	if !ok {
		return
	}
	v, expires := l.version()
	if v == nil { // it has expired meanwhile
		return
	}
	var p fetch.Plan
	p.Good(v, expires)
	if err := r.serve(v, expires.Add(-p.Expire)); err != nil {
		slog.Warningf("Zone %s: what was served before the reload is of no use: %v", r.name(), err)
	}
}
