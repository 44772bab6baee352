package secondary

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/status"
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

	looked  bool   // whether something is stored; this and the next two belong to run, and to who begins with it
	note    string // of what is stored, where it is from
	useless bool   // what is stored cannot be served
	behind  string // what was warned of last, of a primary with an older version; belongs to run
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
	if begun := time.Now(); takesOver {
		again = []time.Time{begun.Add(soonAgain + rand.N(soonAgain)), begun.Add(lastAgain + rand.N(lastAgain))}
	}
	next := time.Now()  // when to look
	deaf := time.Time{} // until when notifications wait
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
		case <-ctx.Done():
			return
		}
		if r.isInherited() {
			next = time.Now() // if it is no more
			timer.Reset(time.Second)
			continue
		}
		if from != "" || !time.Now().Before(next) {
			before := r.zone.Current()
			r.look(ctx, from)
			r.checked.Store(true)
			if from != "" {
				deaf = r.plan.Notified(r.zone.Current() != before, time.Now())
			}
			next = time.Now().Add(r.plan.Wait(rand.N[time.Duration]))
			if len(again) > 0 {
				next, again = again[0], again[1:]
			}
		}
		r.times.set(next, r.plan.Expires())
		wait := r.expire(time.Now(), next)
		if rest := time.Until(deaf); rest > 0 {
			wait = min(wait, rest)
		}
		timer.Reset(wait)
	}
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

// look asks the primaries, one after the other, until one answers, and fetches what is newer. from is who notified us,
// "" if it is simply time.
func (r *replica) look(ctx context.Context, from string) {
	if r.zone.Current() == nil || r.borrowed.Load() {
		r.first(ctx)
		return
	}
	err := r.refresh(ctx, from)
	switch {
	case ctx.Err() != nil, errors.Is(err, errInherited):
	case err == nil:
		r.zone.Looked(nil)
		r.plan.Good(r.zone.Current(), time.Now())
		r.zone.SetExpired(false)
		r.keep(false)
	default:
		r.zone.Looked(err)
		switch {
		case from != "" && isTransfer(err):
			slog.Warningf("Notify from %s for %s: transfer failed: %v", from, r.name(), err)
		case from != "":
			slog.Warningf("Notify from %s for %s: failed primary check: %v", from, r.name(), err)
		case r.plan.Retrying():
			slog.Warningf("Failed retry check %v", err)
		default:
			slog.Warningf("Failed refresh check %v", err)
		}
		r.plan.Failed()
	}
}

// first fetches the zone that we do not have yet, or not from these primaries.
func (r *replica) first(ctx context.Context) {
	var err error
	for _, primary := range r.source.primaries {
		// First a query: who does not answer must not hold a room that other zones need.
		_, err = r.serial(ctx, primary)
		if !errors.Is(err, fetch.ErrConnect) {
			err = r.fetch(ctx, primary, nil)
		}
		if err == nil {
			r.zone.Looked(nil)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errInherited) {
			return
		}
		r.failed(primary, err)
	}
	r.zone.Looked(err)
	r.plan.Failed()
	slog.Warningf("All '%s' masters failed to transfer, retrying in %s: %v", r.name(), r.plan.Wait(rand.N[time.Duration]), err)
}

func (r *replica) failed(primary string, err error) {
	if errors.Is(err, fetch.ErrConnect) {
		plog.Errorf("Failed to setup transfer `%s' with `%q': %v", r.name(), primary, err)
		return
	}
	plog.Errorf("Failed to transfer `%s' from %q: %v", r.name(), primary, err)
}

// refresh fetches the zone if a primary has a newer version. It is an error if no primary could be asked, or none of
// those with a newer version gave it.
//
// They are asked in their order, until one has our version, or a newer one; those that notified us first, and all of these:
// one may have what others have not got yet.
func (r *replica) refresh(ctx context.Context, from string) error {
	err := errors.New("there is no primary")
	primaries, told := r.order(r.told.take())
	ours := r.zone.Current().Serial()
	var same, older bool
	var behind string // the first one that is
	var its uint32
	for i, primary := range primaries {
		if same && i >= told {
			break
		}
		serial, failed := r.serial(ctx, primary)
		switch {
		case failed != nil:
			err = fmt.Errorf("SOA query for %s to %s: %w", r.name(), primary, failed)
			continue
		case serial == ours:
			same = true
			continue
		case serial-ours >= 1<<31: // RFC 1982
			if !older {
				older, behind, its = true, primary, serial
			}
			continue
		}
		if err = r.fetch(ctx, primary, r.zone.Current()); err == nil || errors.Is(err, fetch.ErrCurrent) {
			return nil
		}
		if ctx.Err() != nil || errors.Is(err, errInherited) {
			return err
		}
		r.failed(primary, err)
		err = transferError{err}
	}
	if !same && !older {
		return err
	}
	// What has expired is served no more, so there is nothing to go back behind.
	if e := r.plan.Expires(); !same && !e.IsZero() && !time.Now().Before(e) {
		r.useless = true
		if err = r.fetch(ctx, behind, nil); err != nil && ctx.Err() == nil && !errors.Is(err, errInherited) {
			r.failed(behind, err)
			err = transferError{err}
		}
		return err
	}
	if r.wentBack(behind, its, ours, older && !same); from != "" {
		slog.Infof("Notify from %s for %s: no SOA serial increase seen", from, r.name())
	}
	return nil
}

// order is the primaries as they are to be asked: those at some addresses first, which are so many.
func (r *replica) order(at []netip.Addr) (primaries []string, first int) {
	for _, p := range r.source.primaries {
		if isAt(p, at) {
			primaries = slices.Insert(primaries, first, p)
			first++
		} else {
			primaries = append(primaries, p)
		}
	}
	return primaries, first
}

// wentBack warns of a primary with an older version than ours, once, if no other one has ours: what it has is not fetched until
// its serial is newer than ours, and nobody else would tell.
func (r *replica) wentBack(primary string, serial, ours uint32, alone bool) {
	was := r.behind
	if r.behind = ""; !alone {
		return
	}
	if r.behind = fmt.Sprintf("%s has serial %d, and we have %d", primary, serial, ours); r.behind != was {
		slog.Warningf("Zone %s is not fetched: %s, which is newer", r.name(), r.behind)
	}
}

func (r *replica) client(primary string) *fetch.Client {
	c := &fetch.Client{Primary: primary, Key: r.source.currentKey(), Limits: r.source.limits}
	if r.source.secure[primary] {
		c.TLS = r.source.tls
	}
	return c
}

// serial asks one primary for its serial.
func (r *replica) serial(ctx context.Context, primary string) (uint32, error) {
	if r.rooms.isSilent(primary, time.Now()) {
		return 0, fmt.Errorf("%w: %s did not answer a moment ago", fetch.ErrConnect, primary)
	}
	leave, err := enter(ctx, r.rooms.checks)
	if err != nil {
		return 0, err
	}
	defer leave()
	serial, err := r.client(primary).Serial(ctx, r.origin())
	var timeout net.Error
	if errors.Is(err, fetch.ErrConnect) && errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil {
		r.rooms.silent(primary, time.Now())
	}
	return serial, err
}

// fetch fetches the zone from one primary, and serves it. old is what we have, nil if nothing.
func (r *replica) fetch(ctx context.Context, primary string, old *zone.Zone) error {
	leave, err := enter(ctx, r.rooms.transfers)
	if err != nil {
		return err
	}
	defer leave()
	v, err := r.client(primary).Zone(ctx, r.origin(), old, func(format string, args ...any) {
		slog.Warningf("Zone %s from %s: %s", r.name(), primary, fmt.Sprintf(format, args...))
	})
	if err != nil {
		return err
	}
	if r.source.zonemd {
		if err := v.VerifyDigest(); err != nil && !errors.Is(err, zone.ErrNoDigest) {
			return err
		}
	}
	if err := r.serve(v, time.Now()); err != nil {
		return err
	}
	r.rooms.got.Add(status.Transfer{Zone: r.name(), Direction: "in", Peer: primary, Serial: v.Serial()})
	plog.Infof("Transferred: %s from %s", r.name(), primary)
	r.keep(true)
	return nil
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
