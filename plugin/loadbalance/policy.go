package loadbalance

import (
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// policy says how records are ordered. A nil policy shuffles.
type policy struct {
	weights *weightFile    // nil: shuffle
	prefer  []netip.Prefix // networks whose addresses come first, in this order
}

// class is what a record counts as. The signatures of an RRset stay behind it.
type class uint8

const (
	alias class = iota // CNAME
	address
	addressSig
	mail
	mailSig
	other
	signature // TSIG, SIG(0): of the message, which they end (RFC 8945 §5.1, RFC 2931 §3.1)
)

// The places of classes in a section.
var (
	usual     = [...]uint8{alias: 0, other: 1, address: 2, addressSig: 3, mail: 4, mailSig: 5, signature: 6}
	preferred = [...]uint8{alias: 0, address: 1, addressSig: 2, mail: 3, mailSig: 4, other: 5, signature: 6}
)

// item is a record of a section.
type item struct {
	at    uint16 // its place as the reply came
	rank  uint16 // of an address: the first network in prefer that it is in
	class class
}

// source tells about addresses.
type source interface {
	// addr is the address of the A or AAAA record at a place, owner its owner in wire form, lower case.
	addr(at uint16) netip.Addr
	owner(at uint16) []byte
}

// job is what a policy does with one section.
type job struct {
	*policy
	shuffle, weigh, rank bool
}

// job returns what is to be done with a section of a reply to a question of a type. Only the
// answer and the additional section have addresses that clients use.
func (p *policy) job(s wire.Section, qtype uint16) job {
	if p == nil {
		p = new(policy)
	}
	used := s != wire.Authority
	asked := qtype == wire.TypeA || qtype == wire.TypeAAAA || qtype == wire.TypeSRV
	return job{
		policy:  p,
		shuffle: p.weights == nil,
		weigh:   p.weights != nil && used && asked,
		rank:    len(p.prefer) > 0 && used,
	}
}

// arrange returns the items of a section in the order that they shall have, in the memory of into.
func (j job) arrange(items, into []item, s source) []item {
	hasAddress := slices.ContainsFunc(items, func(i item) bool { return i.class == address })
	if !j.shuffle && !(hasAddress && (j.weigh || j.rank)) {
		return append(into, items...)
	}
	place := &usual
	if j.rank {
		place = &preferred
	}
	into = append(into, items...)
	byClass := func(a, b item) int { return int(place[a.class]) - int(place[b.class]) }
	if !slices.IsSortedFunc(into, byClass) {
		slices.SortStableFunc(into, byClass)
	}
	for from := 0; from < len(into); {
		to := from + 1
		for to < len(into) && into[to].class == into[from].class {
			to++
		}
		if to > from+1 {
			j.group(into[from:to], s)
		}
		from = to
	}
	return into
}

// group orders records of one class.
func (j job) group(items []item, s source) {
	c := items[0].class
	if j.shuffle && (c == address || c == mail) {
		mix(items)
	}
	if c == address && j.weigh {
		j.weights.choose(items, s)
	}
	if c == address && j.rank {
		j.sort(items, s)
	}
}

// mix puts items into random order, each order as likely as any other.
//
// It is Fisher and Yates's shuffle. Four draws share 64 random bits: the product's upper half is the draw, the
// lower half what is left for the next. A message has less than 1<<13 records, so that
// no draw is off by more than one in 4096.
func mix(items []item) {
	var bits64 uint64
	for i := len(items) - 1; i > 0; i-- {
		if i&3 == 3 || bits64 == 0 {
			bits64 = rand.Uint64()
		}
		var j uint64
		j, bits64 = bits.Mul64(bits64, uint64(i+1))
		items[i], items[j] = items[j], items[i]
	}
}

// sort sorts addresses by the first network that they are in; those that are in none come last.
func (p *policy) sort(items []item, s source) {
	for i := range items {
		a := s.addr(items[i].at)
		n := slices.IndexFunc(p.prefer, func(net netip.Prefix) bool { return net.Contains(a) })
		if n < 0 {
			n = len(p.prefer)
		}
		items[i].rank = uint16(n)
	}
	slices.SortStableFunc(items, func(a, b item) int { return int(a.rank) - int(b.rank) })
}
