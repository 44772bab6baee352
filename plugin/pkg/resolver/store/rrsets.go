package store

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Rank is how far what was learned is to be trusted (RFC 2181 §5.4.1). Glue has none: it lies in its Delegation,
// and is never an answer.
type Rank uint8

// Ranks, the lowest first.
const (
	AuthorityData Rank = iota + 1 // authority section of an authoritative answer
	AnswerData                    // answer section of an authoritative answer
	SecureData                    // validated
)

// Kind is what an Entry says.
type Kind uint8

// Kinds of entries.
const (
	Positive Kind = iota // there is an RRset
	NoData               // the name exists, the type does not
	NXDomain             // the name does not exist
)

// Status is what a validator found out about an Entry (RFC 4035 §4.3).
type Status uint8

// Unchecked is what nobody has looked at.
const (
	Unchecked Status = iota
	Insecure
	Secure
	Bogus
)

// Entry is an RRset, or that there is none.
type Entry struct {
	Kind    Kind
	Rank    Rank
	Status  Status
	Only    bool         // NXDomain: kept for its type only, as who told has no say about others
	Set     *rrset.Set   // Positive
	SOA     *rrset.Set   // of a denial, nil if it had none
	Denials []*rrset.Set // NSEC and NSEC3, of a denial or an expanded wildcard
	Zone    string       // whose server told
	TTL     uint32       // when it was learned
	Expires Time
}

// Inferred is an Entry that follows from others, and is not kept.
type Inferred struct {
	Entry
	By any // who found all of them to be secure, nil if it was not one alone
}

// Left is what is left of the TTL, in seconds.
func (e *Entry) Left(now Time) uint32 { return min(e.Expires.Left(now), e.TTL) }

func (e *Entry) size() int64 {
	n := 150
	for _, s := range append([]*rrset.Set{e.Set, e.SOA}, e.Denials...) {
		if s != nil {
			n += s.Size()
		}
	}
	return int64(n)
}

// RRsets is entries by name and type.
type RRsets struct{ shelf shelf[key, *Entry] }

// Get is the entry that tells of name and type, nil if there is none that lives: an RRset or its denial, or that the
// name does not exist.
func (s *RRsets) Get(name string, typ uint16, now Time) *Entry { return s.first(name, typ, now, false) }

// Lookup is Get, or if there is nothing, the entry of the name's CNAME record.
func (s *RRsets) Lookup(name string, typ uint16, now Time) *Entry {
	return s.first(name, typ, now, true)
}

func (s *RRsets) first(name string, typ uint16, now Time, alias bool) *Entry {
	good := func(k key, e *Entry) bool {
		return e.Expires > now && (k.typ == typ || k.typ == 0 || e.Kind == Positive)
	}
	own := keyOf(name, typ)
	keys := append(make([]key, 0, 3), own, own.of(0), own.of(wire.TypeCNAME))
	if typ >= typesTogether {
		if e, ok := s.shelf.get(own); ok && good(own, e) {
			return e
		}
		nx := keyOf(name, 0)
		keys = append(keys[:0], nx, nx.of(wire.TypeCNAME))
	}
	if !alias {
		keys = keys[:len(keys)-1]
	}
	e, _ := s.shelf.firstOf(keys, good)
	return e
}

// Positive is the entry of the RRset of name and type, nil if there is none that lives, whatever is denied.
func (s *RRsets) Positive(name string, typ uint16, now Time) *Entry {
	if e, ok := s.shelf.get(keyOf(name, typ)); ok && e.Expires > now && e.Kind == Positive {
		return e
	}
	return nil
}

// Denied is the NXDOMAIN of a name, nil if there is none.
func (s *RRsets) Denied(name string, now Time) *Entry {
	if e, ok := s.shelf.get(keyOf(name, 0)); ok && e.Expires > now {
		return e
	}
	return nil
}

// Put keeps e under name and type, unless what is there lives and is worth more. It reports whether e was kept. There
// are no records of type 0 (RFC 6895 §3.1), so nothing but NXDOMAIN is kept there.
func (s *RRsets) Put(name string, typ uint16, e *Entry, now Time) (kept bool) {
	if e.Expires <= now || typ == 0 && e.Kind != NXDomain {
		return false
	}
	asked := typ
	if e.Kind == NXDomain && !e.Only {
		typ = 0
	}
	s.shelf.update(keyOf(name, typ), func(old *Entry, ok bool) (*Entry, bool) {
		kept = !ok || old.Expires <= now || e.Rank >= old.Rank
		return e, kept
	})
	if kept && typ != asked { // what was said of the question before holds no more
		if old, ok := s.shelf.get(keyOf(name, asked)); ok && old.Rank <= e.Rank {
			s.shelf.remove(keyOf(name, asked))
		}
	}
	if kept && typ != 0 && e.Kind != NXDomain && e.Rank >= AnswerData { // the name exists
		if d := s.Denied(name, now); d != nil && d.Rank <= e.Rank {
			s.shelf.remove(keyOf(name, 0))
		}
	}
	return kept
}

// Forget forgets name, or with below all names below it, too.
func (s *RRsets) Forget(name string, below bool) int {
	return s.shelf.removeIf(func(k key, _ *Entry) bool { return k.name == name || below && rrset.Below(k.name, name) })
}

// ForgetIf forgets what f reports true for; the type of an NXDOMAIN is 0. It returns how many entries there were.
func (s *RRsets) ForgetIf(f func(name string, typ uint16) bool) int {
	return s.shelf.removeIf(func(k key, _ *Entry) bool { return f(k.name, k.typ) })
}

// Size is the octets of memory that e takes.
func (e *Entry) Size() int64 { return e.size() }

// Total is the number of entries and their octets.
func (s *RRsets) Total() (n int, octets int64) { return s.shelf.total() }

// Each calls f with each entry; for tests and dumps.
func (s *RRsets) Each(f func(name string, typ uint16, e *Entry)) {
	s.shelf.removeIf(func(k key, e *Entry) bool { f(k.name, k.typ, e); return false })
}
