package recurse

import (
	"context"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// local answers what needs no server: other classes, transfers and invalid types, names that never leave, and queries
// that do not desire recursion. It reports false if q is none of these.
func (r *Recurse) local(w *wire.Reply, q *wire.Query) bool {
	switch {
	case q.Class() != wire.ClassIN:
		refuse(w, dns.ExtendedErrorCodeNotSupported, "class not served")
	case ofServer(q.Type()):
		refuse(w, dns.ExtendedErrorCodeNotSupported, "type not served")
	case invalid(q.Type()):
		w.Fail(wire.FormErr, &explained{code: dns.ExtendedErrorCodeInvalidQueryType, text: "type is for no question"})
	case r.specials.answer(w, q):
	case !q.RD():
		r.kept(w, q)
	default:
		return false
	}
	return true
}

// ofServer reports whether a type asks for what a server does, and not for records: transfers, TKEY and TSIG.
func ofServer(typ uint16) bool { return typ >= dns.TypeTKEY && typ <= wire.TypeAXFR }

// invalid reports whether a type is for no question: OPT, NXNAME (RFC 9824 §3.5), and the meta types beside it that
// nobody has assigned (RFC 6895 §3.1).
func invalid(typ uint16) bool {
	return typ == wire.TypeOPT || typ >= dns.TypeNXNAME && typ < dns.TypeTKEY
}

func refuse(w *wire.Reply, code uint16, text string) {
	w.Fail(wire.Refused, &explained{code: code, text: text})
}

// kept answers from the stores alone: with what is kept, else with the closest delegation for who may see it.
func (r *Recurse) kept(w *wire.Reply, q *wire.Query) {
	k := r.keyOf(q)
	switch found, _ := r.known(w, q, &k, nil); {
	case found == answered:
	case r.snoop:
		now := r.now()
		d := r.conf.Stores.Delegations.Closest(cutOf(q), now)
		if d == nil {
			d = r.conf.Hints
		}
		r.refer(w, q, d, now)
	default:
		refuse(w, dns.ExtendedErrorCodeNotAuthoritative, "recursion not desired, and nothing is kept")
	}
}

// What can be answered at once needs no job, and no limit holds for it, however much is under way.

// finding is what came of a look into the stores.
type finding uint8

const (
	unlooked finding = iota // nothing that is kept may do
	nothing
	alias // leads to what is not kept
	old   // is passed over
	answered
)

// passes reports whether what is kept of q's name is passed over, as a cache above wants it anew and keeps it as long. What a
// validator asks for its own sake is no part of that, and what has just failed is not tried again (RFC 9520).
func (r *Recurse) passes(ctx context.Context, q *wire.Query, s *advice.Source) bool {
	left, ok := advice.Refreshes(ctx)
	if !ok || s.Proves() {
		return false
	}
	name, now := string(q.Lower()), r.now()
	e := r.conf.Stores.RRsets.Lookup(name, q.Type(), now)
	_, failed := r.conf.Stores.Failures.Get(name, q.Type(), now)
	return e != nil && int(e.Left(now)) <= left+1 && !failed
}

// atOnce answers with what is kept, or follows from it, if it can. Near its end it is fetched again. s is what a
// validator wants traced, nil if none does.
func (r *Recurse) atOnce(w *wire.Reply, q *wire.Query, s *advice.Source) finding {
	k := r.keyOf(q)
	if k.subnet != "" {
		return unlooked
	}
	found, due := r.known(w, q, &k, s)
	if due && r.prefetch {
		r.again(k)
	}
	return found
}

var lookups = sync.Pool{New: func() any { return new(iterate.Kept) }}

// known answers with what is kept, or follows from it, if it can; due says that its end is near.
func (r *Recurse) known(w *wire.Reply, q *wire.Query, k *jobKey, s *advice.Source) (found finding, due bool) {
	l := lookups.Get().(*iterate.Kept)
	defer lookups.Put(l)
	res, ok := l.Answer(&r.conf, iterate.Question{Name: k.name, Type: k.typ}, s, r.now())
	switch {
	case ok:
		if !s.Proves() {
			r.counts.kept(res)
		}
		r.answer(w, q, res)
		return answered, res.Due
	case l.InVain():
		return nothing, false
	}
	return alias, false
}

// cutOf is the name below whose closest delegation the answer to q lies: who asks for DS records is told the parent's (RFC
// 4035 §3.1.4.1).
func cutOf(q *wire.Query) string {
	name := string(q.Lower())
	if q.Type() == rrset.TypeDS && name != rrset.Root {
		name = rrset.Parent(name)
	}
	return name
}

// refer answers with a delegation.
func (r *resolver) refer(w *wire.Reply, q *wire.Query, d *store.Delegation, now store.Time) {
	w.Begin(q)
	w.SetFlag(wire.FlagRA, true)
	w.SetWriter(pluginName)
	ttl := d.Expires.Left(now)
	for _, h := range d.Hosts {
		w.Target(wire.Authority, []byte(d.Zone), wire.TypeNS, ttl, []byte(h.Name))
	}
	if left := min(ttl, d.Holds.Left(now)); q.DO() && left > 0 { // the DS RRset, or that there is none (RFC 4035 §3.1.4.1)
		a := appender{w: w, do: true, lower: q.Lower(), asked: q.Name()}
		for _, s := range append([]*rrset.Set{d.DS}, d.Denials...) {
			if s != nil {
				a.set(wire.Authority, s.WithTTL(min(s.TTL, left)), true)
			}
		}
	}
	for _, h := range d.Hosts {
		for _, a := range h.Addrs {
			w.Addr(wire.Additional, []byte(h.Name), ttl, a)
		}
	}
}
