package secondary

import (
	"maps"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/catalog"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// consumer is a catalog zone that we have, and what it lists.
type consumer struct {
	source  *source
	members []string         // below which member zones may lie; none: anywhere
	listed  *catalog.Catalog // what it said last, nil if nothing; guarded by the roster
	told    map[string]bool  // members that were logged as skipped; guarded by the roster
}

// member is a zone that is there because a catalog lists it.
type member struct {
	id      string
	catalog string // the catalog's origin
}

// consume has a replica be a catalog. A version that is no proper catalog is not served (RFC 9432 §5.1).
func (r *roster) consume(z *replica, c *consumer) {
	r.catalogs = append(r.catalogs, c)
	var parsed *catalog.Catalog
	z.accept = func(v *zone.Zone) (err error) {
		parsed, err = catalog.Parse(z.name(), recordsOf(v))
		return err
	}
	z.took = func(*zone.Zone) {
		slog.Infof("Parsed catalog zone %s with %d member zones", z.name(), len(parsed.Members))
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ctx.Err() != nil {
			return
		}
		c.listed, c.told = parsed, nil
		r.reconcile()
	}
}

// recordsOf is all records of a zone.
func recordsOf(v *zone.Zone) (rrs []dns.RR) {
	w := v.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		if rr, err := rec.RR(); err == nil {
			rrs = append(rrs, rr)
		}
	}
	return rrs
}

// reconcile makes the members those that the catalogs list. The roster is locked.
func (r *roster) reconcile() {
	todo, left := r.decide(), map[*folder]bool{}
	for _, a := range todo {
		if z := r.replicas[a.zone]; z != nil && z.path() != "" {
			left[z.folder()] = true
		}
		r.carryOut(a)
	}
	if len(todo) > 0 {
		r.publish()
		r.complain(todo)
	}
	for f := range left { // nobody waits for a disk with the roster locked
		r.done.Go(f.clearInTime)
	}
}

// maxUnreached is how many members are warned of one by one that no query can be for; the others are counted.
const maxUnreached = 10

// complain warns of new members that lie in no zone of the server block: queries for them never come here.
func (r *roster) complain(todo []action) {
	zones := plugin.Zones(plugin.OriginsFromArgsOrServerBlock(r.block, nil))
	n := 0
	for _, a := range todo {
		if a.kind != add || len(zones) == 0 || zones.Matches(a.zone) != "" {
			continue
		}
		if n++; n <= maxUnreached {
			slog.Warningf("Catalog member zone %s from catalog %s is not served: it lies in no zone of server block %q", a.zone, a.by.listed.Origin, strings.Join(r.block, " "))
		}
	}
	if n > maxUnreached {
		slog.Warningf("%d more catalog member zones lie in no zone of server block %q", n-maxUnreached, strings.Join(r.block, " "))
	}
}

// action is what is to be done about a member zone.
type action struct {
	kind kind
	zone string
	by   *consumer
	id   string
}

type kind uint8

const (
	add    kind = iota
	remove      // no catalog lists it any more
	reset       // it is another zone of the same name
	move        // another catalog has it now; data is kept if the id is the same
)

// decide compares what catalogs list with the members that there are. What cannot be is logged, once.
func (r *roster) decide() (todo []action) {
	have := maps.Clone(r.members)
	claimed := map[string]bool{} // zones that stay or are taken over
	// Members stay with their catalog, and move first, so that who leaves a zone does not remove what another takes over.
	for _, c := range r.catalogs {
		for _, m := range c.wanted() {
			switch was := have[m.Zone]; {
			case was == nil || claimed[m.Zone]:
			case was.catalog == c.listed.Origin:
				claimed[m.Zone] = true
				if was.id != m.ID {
					todo = append(todo, action{reset, m.Zone, c, m.ID})
				}
			}
		}
	}
	for _, c := range r.catalogs {
		for _, m := range c.wanted() {
			if was := have[m.Zone]; was != nil && was.catalog != c.listed.Origin && r.leaves(m.Zone, was.catalog, c.listed.Origin) {
				todo = slices.DeleteFunc(todo, func(a action) bool { return a.zone == m.Zone })
				todo = append(todo, action{move, m.Zone, c, m.ID})
				claimed[m.Zone] = true
				have[m.Zone] = &member{m.ID, c.listed.Origin}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.members)) {
		if !claimed[name] {
			todo = append(todo, action{remove, name, r.consumerOf(r.members[name].catalog), ""})
			delete(have, name)
		}
	}
	for _, c := range r.catalogs {
		for _, m := range c.wanted() {
			if was := have[m.Zone]; was != nil {
				if was.catalog != c.listed.Origin {
					c.skip(m.Zone)
				}
				continue
			}
			if r.replicas[m.Zone] != nil && r.members[m.Zone] == nil {
				c.skip(m.Zone) // of the Corefile
				continue
			}
			todo = append(todo, action{add, m.Zone, c, m.ID})
			have[m.Zone] = &member{m.ID, c.listed.Origin}
		}
	}
	return todo
}

// leaves reports whether a catalog lets another one take a zone over (RFC 9432 §4.3.1).
func (r *roster) leaves(name, from, to string) bool {
	c := r.consumerOf(from)
	return c != nil && c.listed != nil && slices.ContainsFunc(c.listed.Members, func(m catalog.Member) bool {
		return m.Zone == name && m.ChangeOfOwnership == to
	})
}

func (r *roster) consumerOf(origin string) *consumer {
	for _, c := range r.catalogs {
		if c.listed != nil && c.listed.Origin == origin {
			return c
		}
	}
	return nil
}

// wanted is the members that a catalog lists and may have.
func (c *consumer) wanted() []catalog.Member {
	if c.listed == nil || len(c.members) == 0 {
		if c.listed == nil {
			return nil
		}
		return c.listed.Members
	}
	var wanted []catalog.Member
	for _, m := range c.listed.Members {
		if plugin.Zones(c.members).Matches(m.Zone) != "" {
			wanted = append(wanted, m)
		}
	}
	if n := len(c.listed.Members) - len(wanted); n > 0 && !c.told[""] {
		c.tell("")
		slog.Infof("Skipped %d member zones from catalog %s: outside configured member zones", n, c.listed.Origin)
	}
	return wanted
}

func (c *consumer) skip(name string) {
	if !c.told[name] {
		c.tell(name)
		slog.Warningf("Skipping catalog member zone %s from %s: zone already exists", name, c.listed.Origin)
	}
}

func (c *consumer) tell(what string) {
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[what] = true
}

// carryOut does what was decided. The roster is locked.
func (r *roster) carryOut(a action) {
	was, old := r.members[a.zone], r.replicas[a.zone]
	switch a.kind {
	case add:
		r.admit(a, nil)
		slog.Infof("Added catalog member zone %s from catalog %s", a.zone, a.by.listed.Origin)
	case remove:
		r.dismiss(a.zone)
		slog.Infof("Removed catalog member zone %s from catalog %s", a.zone, was.catalog)
	case reset:
		r.dismiss(a.zone)
		r.admit(a, nil)
		slog.Infof("Reset catalog member zone %s from catalog %s", a.zone, a.by.listed.Origin)
	case move:
		if was.id != a.id {
			old = nil
		}
		r.dismiss(a.zone)
		r.admit(a, old)
		slog.Infof("Migrated catalog member zone %s from catalog %s to %s", a.zone, was.catalog, a.by.listed.Origin)
	}
}

// admit makes a zone a member, with what another replica has of it, which may be nil: until that expires.
func (r *roster) admit(a action, from *replica) {
	z := newReplica(a.zone, a.by.source, r.rooms)
	if from != nil {
		if v, expires := (legacy{r, from}).version(); v != nil {
			if err := z.carryOn(v, expires, from.source); err != nil {
				slog.Warningf("Zone %s: what the catalog before had of it is of no use: %v", a.zone, err)
			}
		}
	}
	r.add(z)
	r.members[a.zone] = &member{a.id, a.by.listed.Origin}
}

// dismiss ends with a member, and forgets all of it.
func (r *roster) dismiss(name string) {
	z := r.replicas[name]
	r.remove(name)
	delete(r.members, name)
	if path := z.path(); path != "" {
		z.folder().doom(path)
	}
}
