package fetch

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// Plan decides when a secondary looks at its primaries again, and until when it may serve what it has, as the SOA
// record tells (RFC 1035 §3.3.13). Its zero value is a zone that was never fetched. It knows no clock: times come in.
type Plan struct {
	Refresh, Retry, Expire time.Duration // of the SOA record

	good     time.Time // when a primary last confirmed the data
	borrowed bool      // that was not one of those which are asked
	failures int       // since then

	lull time.Duration // after the last notification that brought nothing
	deaf time.Time     // its end
}

// How soon is looked again: without data quickly, for nobody is answered; with it as the SOA record says, and a
// little later, so that the secondaries of one primary do not all come at the same time.
const (
	firstRetry = 250 * time.Millisecond // while there is no data; doubled until
	lastRetry  = 10 * time.Second

	refreshJitter = 5 * time.Second
	retryJitter   = 2 * time.Second

	firstLull = 50 * time.Millisecond // after a notification that brought nothing; doubled until
	lastLull  = time.Second
)

// Good notes that a primary confirmed at some time that v is what it has.
func (p *Plan) Good(v *zone.Zone, at time.Time) {
	p.good, p.failures, p.borrowed = at, 0, false
	for rec := range v.RecordsOf(v.Origin(), v.Apex().Set(wire.TypeSOA)) {
		// The five numbers stand behind the two names: serial, refresh, retry, expire, minimum.
		n := rec.RData[len(rec.RData)-20:]
		seconds := func(b []byte) time.Duration {
			s := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
			return max(1, time.Duration(s)) * time.Second
		}
		p.Refresh, p.Retry, p.Expire = seconds(n[4:]), seconds(n[8:]), seconds(n[12:])
	}
}

// Borrowed notes that v was confirmed at some time by a primary that is not asked any more: it is served until it is
// too old, and the zone is wanted from those that are asked as if there were nothing.
func (p *Plan) Borrowed(v *zone.Zone, at time.Time) {
	p.Good(v, at)
	p.borrowed = true
}

// Failed notes that no primary could be asked, or none gave a zone. What there is may be served on, until Expires.
func (p *Plan) Failed() { p.failures++ }

// Notified notes a look that a notification brought, and whether there was anything new. The result is when the next
// one is to be followed: at once if there was, else after a while, as whoever forges a primary's address sends many.
func (p *Plan) Notified(found bool, at time.Time) (again time.Time) {
	if found || at.Sub(p.deaf) > lastLull {
		p.lull = 0
	}
	if found {
		return at
	}
	p.lull = min(max(firstLull, 2*p.lull), lastLull)
	p.deaf = at.Add(p.lull)
	return p.deaf
}

// Retrying reports whether the last look failed.
func (p *Plan) Retrying() bool { return p.failures > 0 }

// Wait is how long to wait from now on before the next look. random is a random duration below its argument.
func (p *Plan) Wait(random func(time.Duration) time.Duration) time.Duration {
	if p.good.IsZero() || p.borrowed {
		return min(lastRetry, firstRetry<<min(max(p.failures-1, 0), 10))
	}
	// The zone of a primary that answers does not expire, whatever its SOA record says, nor if it does not answer once.
	if p.failures > 0 {
		most := max(p.Expire-p.Refresh, p.Expire/4) / 2
		return min(p.Retry+random(retryJitter), max(most, time.Second))
	}
	wait := p.Refresh + random(refreshJitter)
	if wait > p.Expire/4*3 {
		wait = p.Expire/2 + random(p.Expire/4)
	}
	return wait
}

// Expires is when the data becomes too old to be served; the zero Time if there is none.
func (p *Plan) Expires() time.Time {
	if p.good.IsZero() {
		return time.Time{}
	}
	return p.good.Add(p.Expire)
}
