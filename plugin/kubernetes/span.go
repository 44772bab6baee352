package kubernetes

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/store"
)

// Partial reverse names, like 96.10.in-addr.arpa, exist as long as there is an address below them; resolvers that
// minimise names (RFC 9156) walk over them and must not be told that they do not exist (RFC 8020). Nobody else asks. So
// the addresses in use are sorted when such a name comes up, and once a second at most.

// spans holds the sorted addresses. Its zero value is ready.
type spans struct {
	live atomic.Pointer[sortedSpan] // nil until somebody asked
	mu   sync.Mutex                 // of who makes the next
}

// sortedSpan is the addresses in use at some time.
type sortedSpan struct {
	addrs      []netip.Addr
	made       time.Time
	generation uint64 // of the store
}

const spansLast = time.Second

// span answers for a partial reverse name.
func (a *answer) span(p netip.Prefix) result {
	if a.primary == nil || a.shared == nil {
		return nxDomain
	}
	use := store.Inside
	if a.ptrHostnameOnly {
		use = store.Named
	}
	sorted, ok := a.shared.spans.get(a.store, use, time.Now(), a.q.MayBlock())
	switch {
	case !ok:
		return later
	case within(sorted, p):
		return noData
	}
	return nxDomain
}

// get returns the addresses of a use, which is always the same, as of a second ago at most. It reports false if that takes
// longer than the caller may wait.
func (s *spans) get(from *store.Store, use store.Use, now time.Time, mayWait bool) (sorted []netip.Addr, ok bool) {
	if live := s.live.Load(); live.good(from, now) {
		return live.addrs, true
	}
	if !mayWait {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.live.Load(); live.good(from, now) {
		return live.addrs, true
	}
	next := &sortedSpan{made: now, generation: from.Generation()}
	next.addrs = sortedAddrs(from, use)
	s.live.Store(next)
	return next.addrs, true
}

func (s *sortedSpan) good(from *store.Store, now time.Time) bool {
	return s != nil && (s.generation == from.Generation() || now.Sub(s.made) < spansLast)
}

func sortedAddrs(from *store.Store, use store.Use) (all []netip.Addr) {
	seen := map[string]bool{}
	from.Addrs(use, func(namespace string, a netip.Addr) {
		visible, known := seen[namespace]
		if !known {
			visible = exposed(from, namespace)
			seen[namespace] = visible
		}
		if visible {
			all = append(all, a)
		}
	})
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Clip(slices.Compact(all))
}

// within reports whether one of the sorted addresses is of the prefix.
func within(sorted []netip.Addr, p netip.Prefix) bool {
	i, _ := slices.BinarySearchFunc(sorted, p.Addr(), netip.Addr.Compare)
	return i < len(sorted) && p.Contains(sorted[i])
}
