package secondary

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// replica is a zone that is kept as its primaries have it. Its goroutine is run; notify wakes it.
type replica struct {
	zone   *file.Zone
	source *source
	rooms  *rooms
	ended  func() // ends run, and telling of changes

	// accept, if it is set, may refuse a version; took is told of one that is served.
	accept func(v *zone.Zone) error
	took   func(v *zone.Zone)

	updates *updates.Forwarder // nil: they are refused

	alone func(name string) bool // whether nobody else has a zone of that name; nil: so it is

	mu    sync.Mutex // one version at a time
	heir  *replica   // has taken the place of this one, which looks at no primary any more
	elder *replica   // whose place this one takes, and which answers from what this one gets, until it is stopped

	gone  atomic.Bool // it is kept no more
	woken chan string // the address that a notification came from
	told  notifiers   // all addresses that notifications came from since run looked last
	plan  fetch.Plan  // belongs to run
	times times       // as plan has it

	checked  atomic.Bool // run has looked at the primaries
	borrowed atomic.Bool // what is served came from other primaries, and is no more than better than nothing; run writes it

	looked   bool     // whether something is stored; this and the next four belong to run, and to who begins with it
	note     string   // of what is stored, where it is from
	useless  bool     // what is stored cannot be served
	failing  string   // why it could not be stored, "" if it could
	unstored bool     // what is served is another version
	held     bool     // that it is right is yet to be noted, or it is to be stored, when the configuration serves
	storing  *storing // nil if nothing is being stored; belongs to run
	behind   string   // what was warned of last, of a primary with an older version; belongs to run
}

func newReplica(name string, from *source, shared *rooms) *replica {
	r := &replica{zone: file.NewZone(name, ""), source: from, rooms: shared, woken: make(chan string, 1)}
	if from.updates {
		r.updates = &updates.Forwarder{Servers: from.primaries}
	}
	return r
}

func (r *replica) name() string { return r.zone.Origin() }

// origin is the zone's name in wire form.
func (r *replica) origin() []byte {
	name, _ := wire.LowerName(r.name()) // setup and catalogs give names only
	return name
}

// isPrimary reports whether an address is that of a primary, whatever the port.
func (r *replica) isPrimary(a netip.Addr) bool {
	any := []netip.Addr{a.Unmap().WithZone("")}
	return slices.ContainsFunc(r.source.primaries, func(p string) bool { return isAt(p, any) })
}

// isAt reports whether a primary has one of some addresses, whatever its port.
func isAt(primary string, any []netip.Addr) bool {
	addr, err := netip.ParseAddrPort(primary)
	return err == nil && slices.Contains(any, addr.Addr().Unmap().WithZone(""))
}

// notify has run look at the primaries soon. Many notifications in a row have it look once; it reports whether this one
// is the first of them.
func (r *replica) notify(from netip.Addr) (first bool) {
	r.mu.Lock()
	heir := r.heir
	r.mu.Unlock()
	if heir != nil {
		return heir.notify(from)
	}
	r.told.add(from.Unmap().WithZone(""))
	select {
	case r.woken <- from.String():
		return true
	default:
		return false
	}
}

// A process that took over from another one looks twice more, at these times and after some chance: the other one got
// notifications in the beginning.
const (
	soonAgain = 2 * time.Second
	lastAgain = takeOverTime + 5*time.Second
)

// run keeps the zone until ctx is done. takesOver tells that it is in the place of another process.
func (r *replica) run(ctx context.Context, takesOver bool) {
	r.load()
	var again []time.Time // when to look in any case
	now := r.rooms.now
	if begun := now(); takesOver {
		again = []time.Time{begun.Add(soonAgain + rand.N(soonAgain)), begun.Add(lastAgain + rand.N(lastAgain))}
	}
	listens, leap := r.rooms.listens, r.rooms.leap()
	next := now()       // when to look
	deaf := time.Time{} // until when notifications wait
	ends := time.Time{} // when the timer ends, by its own clock
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		from, woken := "", r.woken
		if time.Now().Before(deaf) {
			woken = nil
		}
		select {
		case <-timer.C:
		case from = <-woken:
		case <-listens:
			if listens = nil; r.held {
				r.keep(false)
			}
		case err := <-r.outcome():
			r.goOn(err)
		case <-leap:
			leap = r.rooms.leap()
			timer.Reset(min(time.Until(ends), rand.N(r.rooms.spread)))
			continue
		case <-ctx.Done():
			r.storeLast()
			return
		}
		if r.isInherited() {
			next = now() // if it is no more
			timer.Reset(time.Second)
			continue
		}
		if from != "" || !now().Before(next) {
			changed := r.lookInTime(ctx, from)
			if from != "" {
				deaf = r.plan.Notified(changed, time.Now())
			}
			next = now().Add(r.plan.Wait(rand.N[time.Duration]))
			if len(again) > 0 {
				next, again = again[0], again[1:]
			}
		}
		r.times.set(next, r.plan.Expires())
		wait := r.expire(now(), next)
		if rest := time.Until(deaf); rest > 0 {
			wait = min(wait, rest)
		}
		ends = time.Now().Add(wait)
		timer.Reset(wait)
	}
}

// lookInTime looks, and has the zone expire if that takes longer than it may be served. It reports whether the zone is
// another one then.
func (r *replica) lookInTime(ctx context.Context, from string) (changed bool) {
	before := r.zone.Current()
	meanwhile := time.AfterFunc(r.left(r.rooms.now()), r.age)
	defer meanwhile.Stop()
	r.look(ctx, from)
	r.checked.Store(true)
	return r.zone.Current() != before
}

// expire has the zone expire if it is too old, and tells how long to wait until it is, or until the next look.
func (r *replica) expire(now, next time.Time) time.Duration {
	if e := r.plan.Expires(); !e.IsZero() {
		if !now.Before(e) {
			r.zone.SetExpired(true)
		} else if e.Before(next) {
			next = e
		}
	}
	return next.Sub(now)
}

// age has the zone expire if it is too old. Any goroutine may call it, beside one that serves a version.
func (r *replica) age() {
	r.mu.Lock()
	if e := r.times.expires.Load(); e != 0 && e <= r.rooms.now().UnixNano() {
		r.zone.SetExpired(true)
	}
	r.mu.Unlock()
}

// confirm notes that what is served is right.
func (r *replica) confirm() {
	r.mu.Lock()
	r.plan.Good(r.zone.Current(), r.rooms.now())
	r.times.expires.Store(r.plan.Expires().UnixNano())
	r.zone.SetExpired(false)
	r.mu.Unlock()
}

// errInherited is the error of a version that another replica has to get.
var errInherited = errors.New("the zone is kept by the next configuration now")

// serve serves a version that was right at some time.
func (r *replica) serve(v *zone.Zone, at time.Time) error {
	return r.put(v, func() {
		r.plan.Good(v, at)
		r.borrowed.Store(false)
	})
}

// borrow serves a version that came from other primaries, and was right at some time.
func (r *replica) borrow(v *zone.Zone, at time.Time) error {
	return r.put(v, func() {
		r.plan.Borrowed(v, at)
		r.borrowed.Store(true)
	})
}

// put serves a version, unless another replica does so.
func (r *replica) put(v *zone.Zone, plan func()) error {
	if r.accept != nil {
		if err := r.accept(v); err != nil {
			return err
		}
	}
	r.mu.Lock()
	if r.heir != nil {
		r.mu.Unlock()
		return errInherited
	}
	plan()
	r.times.expires.Store(r.plan.Expires().UnixNano()) // known before run comes to it: a look may take its time
	r.zone.Replace(v)
	if r.elder != nil {
		r.elder.follow(v, r.plan.Expires())
	}
	r.mu.Unlock()
	if r.took != nil {
		r.took(v)
	}
	return nil
}
