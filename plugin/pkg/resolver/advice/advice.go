// Package advice is how a validator and the resolver below it speak of one query, though plugins stand between them.
//
//	validator ──With(ctx, Source)──▶ resolver: who told it goes into the Source; after Doubt others are
//	    │                                     asked, and nothing is taken from what is kept
//	    └──────Learner.Learn──────▶ resolver: what was found to be secure
//
// Any number of goroutines may use both. Start at Source.
package advice

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// Teller is a server, and the zone whose server it was asked as.
type Teller struct {
	Zone   string // wire form, lower case
	Server netip.AddrPort
}

// Source is who told what a reply says. Any number of goroutines may use it: a resolver may go on with a query that
// nobody waits for any more.
type Source struct {
	mu      sync.Mutex
	tellers []Teller
	again   bool
}

// Add notes who told something.
func (s *Source) Add(t Teller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.tellers, t) {
		s.tellers = append(s.tellers, t)
	}
}

// Last is who told something last, not valid if nobody did.
func (s *Source) Last() (t Teller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.tellers); n > 0 {
		t = s.tellers[n-1]
	}
	return t
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

// Doubt has the query that is asked next with s pass over what is kept, and over who has told something so far.
func (s *Source) Doubt() {
	s.mu.Lock()
	s.again = true
	s.mu.Unlock()
}

// Again reports whether what was told is doubted; nil doubts nothing.
func (s *Source) Again() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

// Doubted reports whether a server of a zone is not to be asked.
func (s *Source) Doubted(t Teller) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again && slices.Contains(s.tellers, t)
}

// Witness is an exchange that a query of the wire lane was parked on, and that knows who told what came of it.
type Witness interface {
	// Teller is who told something last, as far as that is known. It is called after the exchange's end.
	Teller() (t Teller, ok bool)
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

// Examiner is a validator that judges replies which lie there already: it asks nobody.
type Examiner interface {
	// Examine judges the replies to all questions: an answer or a denial. The error tells the first that is not secure,
	// and why. reply is asked for these and for keys; it is nil where there is none. Names are wire form, lower case.
	Examine(reply func(name string, typ uint16) *rrset.Message, all iter.Seq2[string, uint16]) error
}
