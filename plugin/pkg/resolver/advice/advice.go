// Package advice is how a validator and the resolver below it speak of one query, though plugins stand between them.
//
//	validator ──With(ctx, Source)──▶ resolver: who told it goes into the Source; after Doubt others are
//	    │                                     asked, and nothing is taken from what is kept
//	    ├──────Learner.Learn──────▶ resolver: what was found to be secure
//	    └──WithDetour(ctx, Detour)──▶ forwarder: which upstream answered; after doubt others are asked
//
// A forwarder beside the resolver refers clients by the resolver's Referrer.
//
// Any number of goroutines may use both. Start at Source.
package advice

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// Teller is a server, the zone whose server it was asked as, and what for: the name of the question, or one that
// aliases have led to. Names are wire form, lower case; an empty one stands for all.
type Teller struct {
	Zone   string
	Server netip.AddrPort
	Name   string
}

// Source is who told what a reply says. Any number of goroutines may use it: a resolver may go on with a query that
// nobody waits for any more.
type Source struct {
	// Proof says that a validator asks for its own sake: a denial that has no SOA record proves as much. It does not
	// change.
	Proof bool
	// Purse is what the question is paid from, with all others that are asked for the sake of one client. It
	// does not change. It may be nil.
	Purse *Purse

	mu      sync.Mutex
	queries atomic.Int64
	vain    bool
	tellers []Teller
	doubted []Teller
	again   bool
	names   []string // that are doubted now
	first   netip.AddrPort
}

// Add notes who told something.
func (s *Source) Add(t Teller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.tellers, t) {
		s.tellers = append(s.tellers, t)
	}
}

// Pay counts what the question took, and what one client's may take at most. It returns how many queries the question
// took so far; of nil, those of spent. It is not inlined: it is for what has waited for servers.
//
//go:noinline
func (s *Source) Pay(spent, most Cost) (queries int) {
	if s == nil {
		return spent.Queries
	}
	s.Purse.Pay(spent, most)
	return int(s.queries.Add(int64(spent.Queries)))
}

// InVain notes that all who could tell something were asked, and did not: they are not asked once more.
func (s *Source) InVain() {
	s.mu.Lock()
	s.vain = true
	s.mu.Unlock()
}

// Cost is queries to servers, and octets of their replies.
type Cost struct{ Queries, Octets int }

// Purse is what a client's query may cost, with all that is asked for its sake: when it is empty a resolver has for a
// validator only what it keeps. Any number of goroutines may use it.
type Purse struct{ queries, octets, mostQueries, mostOctets atomic.Int64 }

// Pay counts what was spent, and what may be at most.
func (p *Purse) Pay(spent, most Cost) {
	if p == nil {
		return
	}
	p.queries.Add(int64(spent.Queries))
	p.octets.Add(int64(spent.Octets))
	p.mostQueries.Store(int64(most.Queries))
	p.mostOctets.Store(int64(most.Octets))
}

// Empty reports whether nothing is left. Of a resolver that counts nothing it never is, nor is nil. It is
// not inlined: its callers are many.
//
//go:noinline
func (p *Purse) Empty() bool {
	if p == nil {
		return false
	}
	most := p.mostQueries.Load()
	return most > 0 && (p.queries.Load() >= most || p.octets.Load() >= p.mostOctets.Load())
}

// Of is who told something of a name last, or if nobody did, who told something last; not valid if nobody did.
func (s *Source) Of(name string) (t Teller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range slices.Backward(s.tellers) {
		if !t.Server.IsValid() || o.Name == name {
			t = o
		}
		if o.Name == name {
			break
		}
	}
	return t
}

// As is the server that told something last of a name at or below a zone's, as one of the zone's or of one above, which
// may serve it, too. It is not valid if none did, as of nil.
func (s *Source) As(zone string) netip.AddrPort {
	for _, t := range slices.Backward(s.All()) {
		if rrset.Below(t.Name, zone) && rrset.Below(zone, t.Zone) {
			return t.Server
		}
	}
	return netip.AddrPort{}
}

// All is who has told something so far.
func (s *Source) All() []Teller {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tellers)
}

// Told is how many have told something.
func (s *Source) Told() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tellers)
}

// Doubt has the query that is asked next with s pass over what is kept of a name, over who has told of it so far, and
// over what else they have told. An empty name stands for all. There is nothing to doubt after InVain.
func (s *Source) Doubt(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vain {
		return
	}
	s.again, s.names = true, []string{name}
	for _, t := range s.tellers {
		if !slices.ContainsFunc(s.tellers, func(o Teller) bool { return same(o.Name, name) && o.Zone == t.Zone && o.Server == t.Server }) {
			continue
		}
		s.names = append(s.names, t.Name)
		if !slices.Contains(s.doubted, t) {
			s.doubted = append(s.doubted, t)
		}
	}
}

// Believe ends the doubt: the query that is asked next with s is answered from what is kept, which was told last.
func (s *Source) Believe() {
	s.mu.Lock()
	s.again, s.names = false, nil
	s.mu.Unlock()
}

// Prefer has a server asked before others, where it is one of those that may be asked: it has told what the answer is
// to prove, and other servers of the zone may have another version of it. One that is not valid is no server.
func (s *Source) Prefer(server netip.AddrPort) {
	s.mu.Lock()
	s.first = server
	s.mu.Unlock()
}

// Preferred is the server that is asked before others, not valid if there is none.
func (s *Source) Preferred() netip.AddrPort {
	if s == nil {
		return netip.AddrPort{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// same reports whether two names are, or one stands for all.
func same(a, b string) bool { return a == b || a == "" || b == "" }

// Proves reports whether a validator asks for its own sake; nil does not.
func (s *Source) Proves() bool { return s != nil && s.Proof }

// Doubts reports whether what is kept of a name is passed over; nil doubts nothing.
func (s *Source) Doubts(name string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again && slices.ContainsFunc(s.names, func(n string) bool { return same(n, name) })
}

// Again reports whether something that was told is doubted; nil doubts nothing.
func (s *Source) Again() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

// Doubted reports whether a server of a zone is not to be asked for a name.
func (s *Source) Doubted(t Teller) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.doubted, func(o Teller) bool {
		return o.Zone == t.Zone && o.Server == t.Server && same(o.Name, t.Name)
	})
}

// Witness is an exchange that a query of the wire lane was parked on, and that knows who told what came of it.
type Witness interface {
	// EachTeller calls f with each who told something, as far as that is known. It is called after the exchange's end.
	EachTeller(f func(Teller))
	// Spent is what it took, and what a client's query may take; see Purse.
	Spent() (spent, most Cost)
}

type contextKey struct{}

// With is ctx with a Source for the query that is asked with it.
func With(ctx context.Context, s *Source) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// Of is the Source of a query, nil if nobody wants to know.
func Of(ctx context.Context) *Source {
	s, _ := ctx.Value(contextKey{}).(*Source)
	return s
}

type refreshKey struct{}

// WithRefresh is ctx for a query of a cache that still keeps the answer, for so many seconds, and wants it anew: a
// resolver passes over what it keeps for no longer than that.
func WithRefresh(ctx context.Context, left int) context.Context {
	return context.WithValue(ctx, refreshKey{}, left)
}

// Refreshes reports whether a query is such a one, and for how many seconds the cache keeps the answer.
func Refreshes(ctx context.Context) (left int, ok bool) {
	left, ok = ctx.Value(refreshKey{}).(int)
	return left, ok
}

// Secure is an RRset that is signed by a zone. TTL is the most that it may have, in seconds.
type Secure struct {
	Set  *rrset.Set
	Zone string
	TTL  uint32
}

// Learner is a resolver that makes use of what was validated.
type Learner interface {
	// Learn tells that a reply was found to be secure. NXDomain says that it denies the name. By stands for who found
	// it, and by which keys: replies made of nothing else are vouched for by it (wire.Reply.Vouch).
	Learn(by any, name string, nxDomain bool, all []Secure)
}

// Patient is a resolver that tells how long a client waits for it.
type Patient interface{ Patience() time.Duration }

// Prefetcher is a resolver that may fetch what it keeps again before its end.
type Prefetcher interface{ Prefetches() bool }

// Insider is a resolver that answers for some zones itself, without signatures.
type Insider interface {
	// Inside reports whether names of a zone, in wire form and lower case, stay inside.
	Inside(zone string) bool
}

// Guard is a resolver that keeps some addresses out of answers.
type Guard interface {
	// Guarded reports whether an address of a name is one of them.
	Guarded(name string, a netip.Addr) bool
}

// Screener is a validator that takes the addresses of a Guard below it out of answers: from what is left of a signed
// RRset nothing could be proven.
type Screener interface {
	// Screens is the zones for whose names it does so.
	Screens() (zones []string)
}

// Examiner is a validator that judges replies which lie there already: it asks nobody.
type Examiner interface {
	// Examine judges the replies to all questions: an answer or a denial. The error tells the first that is not secure,
	// and why. reply is asked for these and for keys; it is nil where there is none. Names are wire form, lower case.
	Examine(reply func(name string, typ uint16) *rrset.Message, all iter.Seq2[string, uint16]) error
}
