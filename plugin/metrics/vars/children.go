package vars

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/prometheus/client_golang/prometheus"
)

// children are the vectors' children of a Series, each looked up once: for queries that are on no loop.
type children struct {
	requests memo[requests, prometheus.Counter]
	replies  memo[replies, prometheus.Counter]
	others   memo[child, prometheus.Counter]
	sizes    memo[int, prometheus.Observer] // by the kind of histogram
}

// child is a counter that has no labels of its own.
type child uint8

const (
	withDO child = iota
	unanswered
)

// Asked is what is counted of a query.
type Asked struct {
	Qtype uint16
	Proto wire.Proto
	IPv4  bool // of the client
	DO    bool
	Size  int // in octets
}

// Replied is what is counted of what came of it.
type Replied struct {
	Rcode      int
	Plugin     string  // which wrote the reply, "" if none did
	Size       int     // in octets, without compression and OPT record
	Unanswered bool    // nobody replied
	Took       float64 // seconds
}

// Add counts a query in the vectors.
func (s *Series) Add(q Asked, r Replied) {
	c := &s.children
	proto := q.Proto.String()
	family := uint8(2)
	if q.IPv4 {
		family = 1
	}
	c.requests.get(requests{labelled(q.Qtype), q.Proto, family, 0}, func() prometheus.Counter {
		return RequestCount.WithLabelValues(s.server, s.zone, s.view, proto, families[family&1], TypeLabel(q.Qtype))
	}).Inc()
	if q.DO {
		c.others.get(withDO, func() prometheus.Counter { return RequestDo.WithLabelValues(s.server, s.zone, s.view) }).Inc()
	}
	observe := func(kind int, value float64) {
		c.sizes.get(kind, func() prometheus.Observer { return s.child(kind) }).Observe(value)
	}
	observe(took, r.Took)
	observe(requestSizes+int(q.Proto), float64(q.Size))
	observe(responseSizes+int(q.Proto), float64(r.Size))
	c.replies.get(replies{r.Rcode, r.Plugin, 0}, func() prometheus.Counter {
		return ResponseRcode.WithLabelValues(s.server, s.zone, s.view, rcode.ToString(r.Rcode), r.Plugin)
	}).Inc()
	if r.Unanswered {
		c.others.get(unanswered, func() prometheus.Counter { return Unanswered.WithLabelValues(s.server, s.zone, s.view) }).Inc()
	}
}

// memo remembers values, which are few and made once. The zero value is ready for use.
type memo[K comparable, V any] struct {
	mu  sync.Mutex // of those who add
	all atomic.Pointer[map[K]V]
}

func (m *memo[K, V]) get(k K, make func() V) V {
	if all := m.all.Load(); all != nil {
		if v, ok := (*all)[k]; ok {
			return v
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[K]V{}
	if all := m.all.Load(); all != nil {
		maps.Copy(next, *all)
	}
	v, ok := next[k]
	if !ok {
		v = make()
		next[k] = v
		m.all.Store(&next)
	}
	return v
}
