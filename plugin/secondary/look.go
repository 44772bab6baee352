package secondary

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// This file asks the primaries: what their serials are, and for a newer version.

// look asks the primaries, one after the other, until one answers, and fetches what is newer. from is who notified us,
// "" if it is simply time.
func (r *replica) look(ctx context.Context, from string) {
	if r.zone.Current() == nil || r.borrowed.Load() {
		r.first(ctx)
		return
	}
	again := r.plan.Retrying()
	right, err := r.refresh(ctx, from)
	if ctx.Err() != nil || errors.Is(err, errInherited) {
		return
	}
	if r.zone.Looked(err); right {
		r.confirm()
		r.keep(false)
	}
	switch {
	case err == nil:
		return
	case from != "" && isTransfer(err):
		slog.Warningf("Notify from %s for %s: transfer failed: %v", from, r.name(), err)
	case from != "":
		slog.Warningf("Notify from %s for %s: failed primary check: %v", from, r.name(), err)
	case again:
		slog.Warningf("Failed retry check %v", err)
	default:
		slog.Warningf("Failed refresh check %v", err)
	}
	r.plan.Failed()
}

// first fetches the zone that we do not have yet, or not from these primaries.
func (r *replica) first(ctx context.Context) {
	var err error
	var slow string
	primaries, _ := r.order()
	for i, primary := range primaries {
		// First a query: who does not answer must not hold a room that other zones need.
		if _, err = r.serial(ctx, primary); !unanswered(err) {
			err = r.fetch(ctx, primary, nil, i < len(primaries)-1)
		}
		if err == nil {
			r.zone.Looked(nil)
			r.keep(true)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errInherited) {
			return
		}
		if r.failed(primary, err); errors.Is(err, fetch.ErrSlow) {
			slow = primary
		}
	}
	if slow != "" && !r.told.anyBut(slow) { // it is better than none
		var over bool
		if over, err = r.tryFetch(ctx, slow, nil, false); err == nil {
			r.zone.Looked(nil)
		}
		if over {
			return
		}
	}
	r.zone.Looked(err)
	r.plan.Failed()
	slog.Warningf("All '%s' masters failed to transfer, retrying in %s: %v", r.name(), r.plan.Wait(rand.N[time.Duration]), err)
}

// tryFetch is fetch, and tells of a failure, as a transferError. It reports whether the look is over: the zone has come, there
// is nothing newer, or others go on.
func (r *replica) tryFetch(ctx context.Context, primary string, old *zone.Zone, others bool) (over bool, err error) {
	err = r.fetch(ctx, primary, old, others)
	switch {
	case err == nil:
		r.keep(true)
		return true, nil
	case errors.Is(err, fetch.ErrCurrent):
		return true, nil
	case ctx.Err() != nil, errors.Is(err, errInherited):
		return true, err
	}
	r.failed(primary, err)
	return false, transferError{err}
}

func (r *replica) failed(primary string, err error) {
	if errors.Is(err, fetch.ErrConnect) {
		plog.Errorf("Failed to setup transfer `%s' with `%q': %v", r.name(), primary, err)
		return
	}
	plog.Errorf("Failed to transfer `%s' from %q: %v", r.name(), primary, err)
}

// refresh fetches the zone if a primary has a newer version. It is an error if no primary could be asked, or none of
// those with a newer version gave it. right reports whether what is served is what one of them has, or had; so it may
// be beside an error, too.
//
// They are asked in their order, until one has our version, or a newer one; those that notified us first, and all of these:
// one may have what others have not got yet.
func (r *replica) refresh(ctx context.Context, from string) (right bool, err error) {
	err = errors.New("there is no primary")
	primaries, told := r.order()
	ours := r.zone.Current().Serial()
	var same, older bool
	var ungiven error // why the newer version did not come
	var slow string
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
		var over bool
		if over, err = r.tryFetch(ctx, primary, r.zone.Current(), i < len(primaries)-1); over {
			return err == nil, err
		}
		if ungiven = err; errors.Is(err, fetch.ErrSlow) {
			slow = primary
		}
	}
	if slow != "" && !r.told.anyBut(slow) { // it is better than none
		_, err = r.tryFetch(ctx, slow, r.zone.Current(), false)
		return err == nil || same, err
	}
	switch {
	case same || older:
	case ungiven != nil:
		return false, ungiven
	default:
		return false, err
	}
	// What has expired is served no more, so there is nothing to go back behind.
	if e := r.plan.Expires(); !same && !e.IsZero() && !r.rooms.now().Before(e) {
		r.useless = true
		_, err = r.tryFetch(ctx, behind, nil, false)
		return err == nil, err
	}
	if r.wentBack(behind, its, ours, older && !same); from != "" && ungiven == nil {
		slog.Infof("Notify from %s for %s: no SOA serial increase seen", from, r.name())
	}
	return true, ungiven
}

// order is the primaries as they are to be asked: those that notified us first, which are so many.
func (r *replica) order() (primaries []string, first int) {
	at := r.told.take()
	for _, p := range r.source.primaries {
		if isAt(p, at) {
			primaries = slices.Insert(primaries, first, p)
			first++
			r.rooms.notified(p, time.Now())
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

// errSilent is the error of a primary that is left alone.
var errSilent = errors.New("it did not answer a moment ago")

// unanswered reports whether an error means that a primary did not answer at all.
func unanswered(err error) bool {
	return errors.Is(err, fetch.ErrConnect) || errors.Is(err, errSilent) || timedOut(err)
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// serial asks one primary for its serial.
func (r *replica) serial(ctx context.Context, primary string) (uint32, error) {
	leave, err := r.rooms.checks.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	// Known when there is room, as others may have found out meanwhile: else all who wait would wait once more.
	sent := time.Now()
	if r.rooms.isSilent(primary, sent) {
		return 0, errSilent
	}
	serial, err := r.client(primary).Serial(ctx, r.origin())
	switch {
	case ctx.Err() != nil:
	case timedOut(err) && errors.Is(err, fetch.ErrConnect):
		r.rooms.unreachable(primary, sent, time.Now())
	case timedOut(err):
		r.rooms.silent(primary, r.name(), sent, time.Now())
	case !errors.Is(err, fetch.ErrConnect):
		r.rooms.heard(primary, time.Now())
	}
	return serial, err
}

// fetch fetches the zone from one primary, and serves it. Who calls it has it stored, as that must not hold the room. old
// is what we have, nil if nothing. A primary that drips is given up if there are others to ask, or another one notifies us
// meanwhile.
func (r *replica) fetch(ctx context.Context, primary string, old *zone.Zone, others bool) error {
	leave, wanted, err := r.rooms.enterTransfer(ctx, primary)
	if err != nil {
		return err
	}
	defer leave()
	c := r.client(primary)
	c.Wanted = func() bool { return others || wanted() || r.told.anyBut(primary) }
	v, err := c.Zone(ctx, r.origin(), old, func(format string, args ...any) {
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
	if err := r.serve(v, r.rooms.now()); err != nil {
		return err
	}
	r.rooms.got.Add(status.Transfer{Zone: r.name(), Direction: "in", Peer: primary, Serial: v.Serial()})
	plog.Infof("Transferred: %s from %s", r.name(), primary)
	return nil
}
