package localroot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// This file keeps the copy up to date, and decides which version is used (RFC 8806 §2, RFC 8976 §4).

// keeping is what is known between two looks at the sources.
type keeping struct {
	plan   fetch.Plan
	failed int    // looks, one after the other
	why    string // the last of them failed
	cheap  bool   // the source of the version that is used is one that may be looked at often
}

// How long to wait until the next look.
const (
	firstRetry = 10 * time.Second // after a failure, doubled until
	lastRetry  = time.Hour
	cheapWait  = time.Minute // for what is near
	longestNap = 30 * time.Second
)

// Why a version is refused, beside what the digest and the examiner say.
var (
	errNoDigest = errors.New("local_root without validator: zone must have ZONEMD")
	errExpired  = errors.New("the zone has expired")
)

// Run looks for the zone, and then for newer versions, until ctx is done: as often as the SOA record
// says (RFC 1035 §3.3.13), after failures ever more seldom. random is a random duration below its
// argument.
func (c *Copy) Run(ctx context.Context, random func(time.Duration) time.Duration) {
	next := c.Now()
	for ctx.Err() == nil {
		if !c.Now().Before(next) {
			c.look(ctx)
			next = c.Now().Add(c.wait(random))
		}
		c.expire()
		nap := time.NewTimer(min(max(next.Sub(c.Now()), 0), longestNap))
		select {
		case <-ctx.Done():
		case <-nap.C:
		}
		nap.Stop()
	}
}

// wait is how long to wait until the next look.
func (c *Copy) wait(random func(time.Duration) time.Duration) (d time.Duration) {
	k := &c.keeping
	if k.failed > 0 {
		d = min(firstRetry<<min(k.failed-1, 10), lastRetry)
	} else {
		d = k.plan.Wait(random)
	}
	if k.cheap {
		d = min(d, cheapWait)
	}
	return d
}

// A version that the source still has is examined as well: signatures end, and anchors change. One
// that does not hold any more is dropped, though it may not have expired.

// look asks the sources in their order, and uses the first good version.
func (c *Copy) look(ctx context.Context) {
	old, k := c.live(), &c.keeping
	var all []string
	k.cheap = false
	for _, s := range c.Sources {
		k.cheap = k.cheap || s.Near()
		v, at, err := s.Fetch(ctx, old)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, fetch.ErrCurrent) {
			v, err = old, nil
		}
		if err == nil {
			err = c.examine(v, v != old)
		}
		if err == nil {
			var plan fetch.Plan
			if plan.Good(v, at); !c.Now().Before(plan.Expires()) {
				err = errExpired
			}
			if err == nil {
				k.plan, k.failed, k.why = plan, 0, ""
				c.use(v, s)
				return
			}
		}
		if v != nil && v == old {
			c.drop()
		}
		all = append(all, fmt.Sprintf("%s: %v", s, err))
	}
	k.failed++
	if why := strings.Join(all, "; "); why != k.why {
		k.why = why
		c.Log.Warningf("Local root zone: %s", why)
	}
}

// use has v answer from now on. Who is being answered from an older version is not disturbed.
func (c *Copy) use(v *zone.Zone, s Source) {
	old := c.current.Swap(&version{v, c.keeping.plan.Expires()})
	if old != nil && old.zone == v {
		return
	}
	c.Log.Infof("Local root zone: serial %d of %s", v.Serial(), s)
	c.tell(v.Serial())
}

// expire drops the copy if it is too old (RFC 8806 §3): better no copy than one that leads to servers
// which are no more.
func (c *Copy) expire() {
	if v := c.current.Load(); v != nil && !c.Now().Before(v.end) {
		c.Log.Warningf("Local root zone: serial %d has expired", v.zone.Serial())
		c.drop()
	}
}

func (c *Copy) drop() {
	if c.current.Swap(nil) != nil {
		c.Log.Warningf("Local root zone: there is none, the root's servers are asked")
		c.tell(0)
	}
}

func (c *Copy) tell(serial uint32) {
	if c.Changed != nil {
		c.Changed(serial)
	}
}

// examine finds out whether z is the root zone, as a whole: its digest is right and signed, or it has none, which is
// proven, and all delegations are signed for or proven not to be. whole says that z has not been looked at before; of
// others it is looked whether the signatures still hold.
func (c *Copy) examine(z *zone.Zone, whole bool) error {
	if len(z.Origin()) != 1 {
		return fmt.Errorf("it is the zone %s", wire.Text(z.Origin()))
	}
	e := c.examiner.Load()
	bare := z.Apex().Set(wire.TypeZONEMD) == nil
	switch {
	case bare && e == nil:
		return errNoDigest
	case !bare && whole:
		if err := z.VerifyDigest(); err != nil {
			return err
		}
	}
	if e == nil {
		return nil
	}
	return c.signed(z, *e, bare && whole)
}

// signed has the examiner look at the apex, and with all at each delegation.
func (c *Copy) signed(z *zone.Zone, e advice.Examiner, all bool) error {
	return e.Examine(func(name string, typ uint16) *rrset.Message { return reply(z, name, typ) }, func(yield func(string, uint16) bool) {
		if !yield(rrset.Root, wire.TypeSOA) || !yield(rrset.Root, wire.TypeZONEMD) || !all {
			return
		}
		for name := range cuts(z) {
			if !yield(name, rrset.TypeDS) {
				return
			}
		}
	})
}

// cuts is the names of z's delegations, in wire form. The root's own NS set is none.
func cuts(z *zone.Zone) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, n := range z.Nodes() {
			if len(name) > 1 && n.Set(wire.TypeNS) != nil && !yield(string(name)) {
				return
			}
		}
	}
}
