package iterate

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// This file is servers that are asked over TCP as they were silent over UDP. Where datagrams are lost, or none gets
// through that is long, TCP may get through: its segments are sent again. So it outlasts a server that stands still for
// a moment, or a way to it that changes; that such a server counts as dead meanwhile, for what others have asked, does
// not matter.

const (
	tcpWait = 3 * time.Second
	deafAt  = 4 // time-outs in a row after which TCP is tried, before anybody is asked a third time
	deafNow = 2 // if that has helped of late (store.Servers.Streamed)
	deafAny = 2 // so many more if some servers were not asked yet
)

// deaf reports whether so many queries over UDP were lost, and no server has replied, that TCP is tried. Where the zone
// may have moved its parent is asked before that (renew.go).
func (t *task) deaf(all []*store.Server) bool {
	quiet, least := t.here.quiet, deafAt
	if quiet == 0 || t.here.tcp || t.aside != nil || len(t.needs) > 0 {
		return false
	}
	if t.run.conf.Stores.Servers.Streamed(t.run.now) {
		least = deafNow
	} else if t.mayRenew() {
		return false
	}
	known := max(len(all), len(t.hosts())) // others may be had yet
	return quiet >= min(least, 2*known) && (quiet >= known || quiet >= least+deafAny)
}

// overTCP is a server that was silent for each query over UDP, so many at least: one that has replied to others of
// late, or that was not tried over TCP for a while.
func (t *task) overTCP(all []*store.Server, least int) (best *store.Server) {
	if t.here.tcp {
		return nil
	}
	for _, s := range all {
		if y := t.here.try(s.Addr); y.bad || y.n < least || y.silent < y.n || t.spared(s) || !s.Pauses(t.run.now) && !s.MayStream(t.here.q.Name, t.run.now) {
			continue
		}
		if lame, _ := s.Lame(t.cut.Zone, t.run.now); !lame && (best == nil || t.speed(s) < t.speed(best)) {
			best = s
		}
	}
	if best != nil {
		best.TryStream(t.here.q.Name, t.run.now)
	}
	t.here.tcp = best != nil
	return best
}

// resort is a server for when no other is left, and whether it is asked over TCP. Of those that count as dead one is
// probed before that, and another one after it.
func (t *task) resort(all []*store.Server) (s *store.Server, tcp bool) {
	if s = t.overTCP(all, perServer); s != nil {
		return s, true
	}
	if t.here.probes == 0 {
		if s = t.probe(all); s != nil {
			return s, false
		}
	}
	if s = t.overTCP(all, 1); s != nil {
		return s, true
	}
	if s = t.probe(all); s == nil {
		s = t.lame(all)
	}
	return s, false
}
