package dynupdate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// This file makes the PTR records of a zone with reverse_of. Those that point into the zone named there are the ones
// that its A and AAAA records make (RFC 1035 §3.5, RFC 3596 §2.5), and no others: so what a crash has left of a
// change that touched both is made right at start.
//
//	update ──▶ store with addresses: next version ──lead──▶ followers: next versions of theirs
//	                 │ if all can be made                        │
//	                 ▼                                           ▼
//	               group ──waits for──▶ the followers' groups: these are durable first
//
// The lock of a store is taken before those of its followers, and these in the order of their zones. No zone has
// both, so there is no circle.

// follower is a zone that has PTR records for the addresses of another.
type follower struct {
	store    *store
	settings *settings // of its directive
}

// pointer is a PTR record that comes or goes.
type pointer struct {
	at  []byte // the name of an address
	to  []byte
	ttl uint32
	add bool
}

// arpa is where the names of addresses are.
var arpa = [...][]byte{wire.MustName("in-addr.arpa"), wire.MustName("ip6.arpa")}

// isReverse reports whether a lower name is one of in-addr.arpa or ip6.arpa.
func isReverse(name []byte) bool { return wire.Below(name, arpa[0]) || wire.Below(name, arpa[1]) }

// reverseName is the name of the address that an A or AAAA record has.
func reverseName(typ uint16, rdata []byte) (name []byte, ok bool) {
	a, ok := netip.AddrFromSlice(rdata)
	switch {
	case !ok:
		return nil, false
	case typ == dns.TypeA && a.Is4():
		for _, b := range slices.Backward(rdata) {
			label := strconv.Itoa(int(b))
			name = append(append(name, byte(len(label))), label...)
		}
		return append(name, arpa[0]...), true
	case typ == dns.TypeAAAA && a.Is6():
		const digits = "0123456789abcdef"
		for _, b := range slices.Backward(rdata) {
			name = append(name, 1, digits[b&0xF], 1, digits[b>>4])
		}
		return append(name, arpa[1]...), true
	}
	return nil, false
}

// owns reports whether the PTR records that point to a lower name are made of a zone's addresses. Of several zones the one
// with the longest name has them.
func (s *settings) owns(origin, target []byte) bool { return string(s.owner(target)) == string(origin) }

// owner is the zone whose addresses make the PTR records that point to a lower name, nil if there is none.
func (s *settings) owner(target []byte) (longest []byte) {
	for _, origin := range s.reverseOf {
		if len(origin) > len(longest) && wire.Below(target, origin) {
			longest = origin
		}
	}
	return longest
}

// lowered is a name in lower case.
func lowered(name []byte) []byte {
	name = slices.Clone(name)
	wire.Lower(name, name)
	return name
}

// pointer is the PTR record that a record of a zone makes, if it makes one of the follower's.
func (f *follower) pointer(origin []byte, r zone.Record) (p pointer, ok bool) {
	if r.Type != dns.TypeA && r.Type != dns.TypeAAAA || strings.HasPrefix(string(r.Owner), "\x01*") {
		return p, false
	}
	p.at, ok = reverseName(r.Type, r.RData)
	if !ok || !wire.Below(p.at, f.settings.origin) || !f.settings.owns(origin, r.Owner) {
		return p, false
	}
	p.to, p.ttl, p.add = slices.Clone(r.Owner), r.TTL, true
	return p, true
}

// pointers is the PTR records that a change of a zone has come and go.
func (f *follower) pointers(origin []byte, d *zone.Delta) (all []pointer) {
	w := d.Walk()
	for n := range d.Removed + d.Added {
		r, _ := w.Next()
		if p, ok := f.pointer(origin, r); ok {
			p.add = n >= d.Removed
			all = append(all, p)
		}
	}
	return all
}

// refusal is the error of an update that a follower's limits refuse.
type refusal struct{ result }

func (r *refusal) Error() string { return r.note }

// make makes the follower's version with what comes and goes, nil if that is the one that is there. Its lock is held.
func (f *follower) make(changes []pointer) (*prepared, error) {
	var no *refusal
	do := func(c *zone.Change) bool {
		for _, p := range changes {
			if no = f.apply(c, p); no != nil {
				return false
			}
		}
		return c.Changes() && raise(c, f.settings.origin, f.settings.serial, uint32(f.store.now().Unix())) == nil
	}
	p, err := f.store.prepare(do, func(next *zone.Zone, d *zone.Delta) bool {
		if r := f.settings.within(next, d); r.rcode != dns.RcodeSuccess {
			no = &refusal{r}
		}
		return no == nil
	})
	if no != nil {
		no.result = refused("zone %s: %s", f.store.zone, no.note)
		return nil, no
	}
	if err == errFrozen {
		return nil, &refusal{refused("zone %s is frozen", f.store.zone)}
	}
	return p, err
}

// apply makes one change. Beside a CNAME record, such as those that lead to a part of a network (RFC 2317), there is no PTR
// record.
func (f *follower) apply(c *zone.Change, p pointer) *refusal {
	s := c.At(p.at)
	switch {
	case !p.add:
		s.Remove(dns.TypePTR, p.to)
		return nil
	case s.Len(dns.TypeCNAME) > 0:
		return nil
	}
	if err := s.Add(dns.TypePTR, min(max(p.ttl, f.settings.ttlMin), f.settings.ttlMax), p.to); err != nil {
		return &refusal{refused("%v", err)}
	}
	if n := s.Len(dns.TypePTR); n > maxSet {
		return &refusal{refused("%s PTR would have %d records, at most %d are allowed", wire.Text(p.at), n, maxSet)}
	}
	return nil
}

// led is what an update does to a follower.
type led struct {
	follower
	*prepared        // nil if nothing changes
	after     *group // what it becomes durable with
}

// following is what an update does to followers, which are locked until it is installed.
type following []led

// lead prepares what a change does to the followers that it concerns. If one cannot have it, nothing is done. s.mu is
// held.
func (s *store) lead(d *zone.Delta) (all following, err error) {
	for _, f := range s.followers {
		changes := f.pointers(s.tip.Origin(), d)
		if len(changes) == 0 {
			continue
		}
		f.store.mu.Lock()
		all = append(all, led{follower: f})
		if all[len(all)-1].prepared, err = f.make(changes); err != nil {
			all.unlock()
			return nil, err
		}
	}
	return all, nil
}

func (all following) unlock() {
	for _, l := range all {
		l.store.mu.Unlock()
	}
}

// install makes the versions those that are to become durable. after is when they are; changed is the stores that have no
// such thing to wait for.
func (all following) install() (after []*group, changed []*store) {
	for i := range all {
		l := &all[i]
		if l.prepared == nil {
			l.after = l.store.last()
		} else if l.after = l.store.install(l.prepared); l.after == nil {
			changed = append(changed, l.store)
		}
		if l.after != nil {
			after = append(after, l.after)
		}
	}
	all.unlock()
	return after, changed
}

// tell counts and logs what was done, when it is durable.
func (all following) tell(of string) {
	for _, l := range all {
		if l.prepared == nil {
			continue
		}
		added, removed := l.settings.counts(l.delta)
		recordsChanged.WithLabelValues(l.store.zone, "add").Add(float64(added))
		recordsChanged.WithLabelValues(l.store.zone, "remove").Add(float64(removed))
		if !l.settings.quiet {
			logger.Infof("Zone %s: addresses of %s: +%d -%d serial %d->%d", l.store.zone, of, added, removed, l.delta.From, l.delta.To)
		}
	}
}

// await waits until what was done is durable.
func (all following) await() error {
	for _, l := range all {
		if l.after == nil {
			continue
		}
		if <-l.after.done; l.after.err != nil {
			return l.after.err
		}
	}
	return nil
}

// agree makes the PTR records of a follower those that the addresses of the zone make. While another process has the
// database of either, there is nothing to do: it is done when it has let go of both.
func (f *follower) agree(s *store) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("zone %s, of %s: %w", f.store.zone, s.zone, err)
		}
	}()
	s.mu.Lock()
	if !slices.Contains(s.followers, *f) || s.isClosed || s.handing != nil {
		s.mu.Unlock()
		return nil
	}
	f.store.mu.Lock()
	if f.store.handing != nil {
		f.store.mu.Unlock()
		s.mu.Unlock()
		return nil
	}
	p, err := f.make(f.differences(s.tip))
	if err != nil {
		f.store.mu.Unlock()
		s.mu.Unlock()
		return err
	}
	all := following{{follower: *f, prepared: p}}
	_, changed := all.install()
	s.mu.Unlock()
	for _, told := range changed {
		told.changed()
	}
	if err := all.await(); err != nil {
		return err
	}
	all.tell(s.zone)
	return nil
}

// differences is what is to come and go for the follower to agree with a version of the zone. Its lock is held.
func (f *follower) differences(v *zone.Zone) (changes []pointer) {
	wanted := map[string]pointer{} // by both names
	key := func(at, to []byte) string { return string(at) + "|" + string(to) }
	var order []string
	for name, n := range v.Nodes() {
		for _, typ := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
			for r := range v.RecordsOf(name, n.Set(typ)) {
				if p, ok := f.pointer(v.Origin(), r); ok {
					k := key(p.at, p.to)
					wanted[k], order = p, append(order, k)
				}
			}
		}
	}
	there := f.store.tip
	for name, n := range there.Nodes() {
		for r := range there.RecordsOf(name, n.Set(dns.TypePTR)) {
			to := lowered(r.RData)
			if k := key(name, to); f.settings.owns(v.Origin(), to) {
				if _, ok := wanted[k]; ok {
					delete(wanted, k)
				} else {
					changes = append(changes, pointer{at: slices.Clone(name), to: to})
				}
			}
		}
	}
	for _, k := range order {
		if p, ok := wanted[k]; ok {
			changes = append(changes, p)
		}
	}
	return changes
}

// follow makes the store one that has PTR records for the addresses of those that its terms name, and of no others.
// stores is locked.
func (s *store) follow(t terms) {
	s.mu.Lock()
	before := s.follows
	s.follows = t.follows
	s.mu.Unlock()
	for _, of := range before {
		if !slices.Contains(t.follows, of) {
			of.setFollower(s, nil)
		}
	}
	for _, of := range t.follows {
		of.setFollower(s, &t.by.settings)
	}
}

// setFollower makes a store a follower with these settings, or none.
func (s *store) setFollower(by *store, settings *settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.followers), func(f follower) bool { return f.store == by })
	if settings != nil {
		all = append(all, follower{by, settings})
		slices.SortFunc(all, func(a, b follower) int {
			return 2*strings.Compare(a.store.zone, b.store.zone) + strings.Compare(a.store.path, b.store.path)
		})
	}
	s.followers = all
}

// agree makes right what the store follows, and who follows it.
func (s *store) agree() error {
	s.mu.Lock()
	follows, followers := s.follows, s.followers
	s.mu.Unlock()
	var errs []error
	for _, f := range followers {
		errs = append(errs, f.agree(s))
	}
	for _, of := range follows {
		of.mu.Lock()
		followers := of.followers
		of.mu.Unlock()
		for _, f := range followers {
			if f.store == s {
				errs = append(errs, f.agree(of))
			}
		}
	}
	return errors.Join(errs...)
}

// agreeOrTell is agree for who has no use for its error.
func (s *store) agreeOrTell() {
	if err := s.agree(); err != nil && !errors.Is(err, errClosed) {
		logger.Errorf("PTR records do not have all addresses as yet: %v", err)
	}
}

// agreeLater is agree for who does not wait for it.
func (s *store) agreeLater() { go s.agreeOrTell() }

// frees reports whether a change of a zone with PTR records takes CNAME records away, beside which there were none. s.mu
// is held.
func (s *store) frees(d *zone.Delta) bool {
	if len(s.follows) == 0 {
		return false
	}
	w := d.Walk()
	for range d.Removed {
		if r, _ := w.Next(); r.Type == dns.TypeCNAME {
			return true
		}
	}
	return false
}
