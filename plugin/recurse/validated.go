package recurse

import (
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is what a validator above has to say: what it found to be secure answers for other names, too, and what it
// found to be bogus is asked of other servers.

var (
	_ advice.Learner = (*Recurse)(nil)
	_ advice.Patient = (*Recurse)(nil)
	_ advice.Insider = (*Recurse)(nil)
	_ advice.Guard   = (*Recurse)(nil)
	_ advice.Witness = (*job)(nil)
)

// beginOf is begin for a query that a validator may want traced; s is nil if none does. One whose last answer did not
// hold has a job of its own.
func (r *resolver) beginOf(q *wire.Query, s *advice.Source) (j *job, own bool) {
	if !s.Again() {
		if j, own = r.begin(q); own && s != nil {
			j.run.Trace(s)
			j.client = !s.Proof
		}
		return j, own
	}
	r.jobs.mu.Lock()
	crowded := len(r.jobs.all) >= r.maxRecursions
	r.jobs.mu.Unlock()
	if crowded {
		return nil, false
	}
	j = r.newJob(r.keyOf(q), false)
	j.run.Trace(s)
	return j, true
}

// EachTeller implements advice.Witness.
func (j *job) EachTeller(f func(advice.Teller)) {
	switch r := j.result; {
	case r == nil || r.Queries == 0:
	case len(r.Tellers) > 0:
		for _, t := range r.Tellers {
			f(t)
		}
	case r.Server.IsValid():
		f(advice.Teller{Zone: r.Zone, Server: r.Server, Name: j.key.name})
	}
}

// Spent implements advice.Witness.
func (j *job) Spent() (spent, most advice.Cost) {
	if r := j.result; r != nil {
		spent = advice.Cost{Queries: r.Queries, Octets: r.Octets}
	}
	return spent, advice.Cost{Queries: j.conf.Budget.Queries, Octets: j.conf.Budget.Octets}
}

// Patience implements advice.Patient.
func (r *Recurse) Patience() time.Duration { return r.timeout }

// Prefetches implements advice.Prefetcher.
func (r *Recurse) Prefetches() bool { return r.prefetch }

// Inside implements advice.Insider.
func (r *Recurse) Inside(zone string) bool { return r.specials.zones[zone] }

// Guarded implements advice.Guard.
func (r *Recurse) Guarded(name string, a netip.Addr) bool {
	return r.guarded != nil && r.guarded(name, a)
}

// Learn implements advice.Learner.
func (r *Recurse) Learn(by any, name string, nxDomain bool, all []advice.Secure) {
	now := r.now()
	if nxDomain {
		r.conf.Stores.RRsets.SecureDenial(name, now)
	}
	if r.denials == nil {
		return
	}
	for _, s := range all {
		most := r.conf.MaxTTL
		switch s.Set.Type {
		case wire.TypeSOA, rrset.TypeNSEC, rrset.TypeNSEC3:
			most = r.conf.MaxNeg
		default:
			if below(s.Set.Name, r.conf.Subnets) { // it may be for one network only
				continue
			}
		}
		r.denials.Learn(by, s.Zone, s.Set, now.After(min(s.TTL, s.Set.TTL, most)))
	}
}

// synthesize is iterate.Config.Synthesize.
func (r *resolver) synthesize(name string, typ uint16, now store.Time) *store.Inferred {
	e := r.denials.Answer(name, typ, now)
	if e != nil {
		r.counts.synthesized(e.Kind)
	}
	return e
}

// soa is iterate.Config.SOA.
func (r *resolver) soa(denial *rrset.Set, now store.Time) *rrset.Set {
	return r.denials.SOA(validate.SignerOf(denial), now)
}
