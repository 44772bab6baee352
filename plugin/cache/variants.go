package cache

import (
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Answers for a part of the clients are kept together, for each question: in one entry that answers nothing itself and holds them as
// variants. It is found, bounded and let go like others.

// maxVariants is how many answers for different networks are kept for one question.
const maxVariants = 64

// variants is what e holds for different networks, those of longer prefixes first.
func (e *entry) variants() []*entry {
	if e == nil || e.extra == nil {
		return nil
	}
	return e.extra.variants
}

// weight is how many answers e is.
func (e *entry) weight() int64 { return int64(max(1, len(e.variants()))) }

// network is the one that e is kept for, not asked for if it is for all clients.
func (e *entry) network() (n network) {
	if e.extra != nil {
		n = e.extra.scope.net
	}
	return n
}

// isVariant reports whether e is kept for a part of the clients.
func (e *entry) isVariant() bool { return e.extra != nil && e.extra.scope.net.asked }

// suits reports whether e, a variant, is for who names n.
func (e *entry) suits(n *network) bool {
	r := &e.extra.scope
	return r.net == *n || !r.exact && r.net.covers(n)
}

// holding is an entry that holds the variants; like is one of the same question. It is nil if there are none.
func holding(variants []*entry, like *entry) *entry {
	if len(variants) == 0 {
		return nil
	}
	e := &entry{hash: like.hash, about: like.about, packed: wire.PackKey(like.packed.Key()), stored: like.stored, extra: &entryExtra{variants: variants}}
	e.used.Store(like.used.Load())
	return e
}

// with is the entry that holds v beside what old holds, without what v takes the place of and what is useless. Beyond
// maxVariants the oldest goes.
func (old *entry) with(v *entry, useless func(*entry) bool) *entry {
	all := make([]*entry, 0, len(old.variants())+1)
	for _, o := range old.variants() {
		if o.extra.scope.net != v.extra.scope.net && !useless(o) {
			all = append(all, o)
		}
	}
	if len(all) >= maxVariants {
		oldest := 0
		for i, o := range all {
			if o.stored < all[oldest].stored {
				oldest = i
			}
		}
		all = slices.Delete(all, oldest, oldest+1)
	}
	at := 0
	for at < len(all) && all[at].extra.scope.net.bits > v.extra.scope.net.bits {
		at++
	}
	return holding(slices.Insert(all, at, v), v)
}

// without is e without the variants that are to go: e itself if there are none such, nil if nothing is left.
func (e *entry) without(goes func(*entry) bool) *entry {
	all := e.variants()
	first := slices.IndexFunc(all, goes)
	if first < 0 {
		return e
	}
	rest := append(make([]*entry, 0, len(all)), all[:first]...)
	for _, v := range all[first:] {
		if !goes(v) {
			rest = append(rest, v)
		}
	}
	return holding(rest, e)
}

// variantFor is the variant of longest prefix that suits who names n and is of use, nil if there is none.
func (c *Cache) variantFor(e *entry, n *network, now time.Time) *entry {
	for _, v := range e.variants() {
		if v.suits(n) && c.useful(v, now) {
			e.touch()
			return v
		}
	}
	return nil
}

// former is the answer that s has for k and who names n, which may be nobody, nil if there is none.
func (s *store) former(k *key, n network) *entry {
	old := s.get(k)
	if !n.asked {
		return old
	}
	for _, v := range old.variants() {
		if v.extra.scope.net == n {
			return v
		}
	}
	return nil
}

// file puts e into s, where it belongs.
func (c *Cache) file(s *store, e *entry, now time.Time) {
	k := e.key()
	s.put(&k, func(old *entry) *entry {
		if !e.isVariant() {
			return e
		}
		return old.with(e, func(v *entry) bool { return !c.useful(v, now) })
	})
}

// outdate takes out the variants that e, just kept for k, is given in place of from now on: those that whoever asked would have got,
// and that are for no more clients than e. Their longer prefixes would hide e as long as serve_stale lets them. As elsewhere an
// error is given in place of nothing, nor what does not answer if positive answers are preferred, but for denials by a denial.
func (c *Cache) outdate(e *entry, k *question) {
	isError, good := e.kind == kind(response.ServerError), e.answers || !c.preferPositive
	outdated := func(v *entry) bool {
		return v != e && v.suits(&k.net) && (e.forAll || v.network().bits >= e.network().bits)
	}
	for _, s := range []*store{c.positive, c.negative} {
		denies := s == c.negative && !positive(response.Type(e.kind))
		if isError || !good && !denies || len(s.get(&k.key).variants()) == 0 {
			continue
		}
		s.put(&k.key, func(old *entry) *entry { return old.without(outdated) })
	}
}

// strike takes what is where e belongs out of s.
func (s *store) strike(e *entry) {
	k := e.key()
	if s.get(&k) == nil {
		return
	}
	s.put(&k, func(old *entry) *entry {
		if old == nil || !e.isVariant() {
			return nil
		}
		return old.without(func(v *entry) bool { return v.extra.scope.net == e.extra.scope.net })
	})
}
