package vars

import (
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/prometheus/client_golang/prometheus"
)

// Series counts the queries for one zone of a server that are answered as bytes. On a loop it counts without
// locks; the vectors learn of it when they are collected. There is one Series for each server, zone and view, and it is kept
// for ever, as vectors keep their children.
type Series struct {
	server, zone, view string
	loops              eventloop.PerLoop[tally]
	children           children

	mu    sync.Mutex
	total [kinds]histogram // what was taken from loops
}

// The histograms of a series. Sizes are by protocol.
const (
	took          = iota
	requestSizes  // and requestSizes+1 for TCP
	_             //
	responseSizes // and responseSizes+1 for TCP
	_             //
	kinds
)

type seriesKey struct{ server, zone, view string }

var allSeries struct {
	mu sync.RWMutex
	m  map[seriesKey]*Series
}

// SeriesOf returns the Series of a server, a zone and a view.
func SeriesOf(server, zone, view string) *Series {
	key := seriesKey{server, zone, view}
	allSeries.mu.RLock()
	s := allSeries.m[key]
	allSeries.mu.RUnlock()
	if s != nil {
		return s
	}
	allSeries.mu.Lock()
	defer allSeries.mu.Unlock()
	if s = allSeries.m[key]; s == nil {
		s = &Series{server: server, zone: zone, view: view}
		if allSeries.m == nil {
			allSeries.m = map[seriesKey]*Series{}
		}
		allSeries.m[key] = s
	}
	return s
}

// each calls f with all series.
func eachSeries(f func(*Series)) {
	allSeries.mu.RLock()
	defer allSeries.mu.RUnlock()
	for _, s := range allSeries.m {
		f(s)
	}
}

// tally is what was counted on one loop.
type tally struct {
	requests       []requests
	replies        []replies
	do, unanswered uint64
	histograms     [kinds]histogram
	inline         uint64 // queries of the batch that were answered at once: they all took as long as it does
}

// requests counts queries of one kind, replies replies of one.
type requests struct {
	qtype  uint16
	proto  wire.Proto
	family uint8 // 1 for IPv4, 2 for IPv6
	n      uint64
}

type replies struct {
	rcode  int
	plugin string
	n      uint64
}

// Count counts a query with what was decided about it.
func (s *Series) Count(q *wire.Query, w *wire.Reply) {
	o := outcomeOf(w)
	loop := q.Loop()
	if loop == nil {
		s.countVectors(q, &o)
		return
	}
	t := s.loops.Get(loop)
	t.request(q)
	t.reply(&o)
	proto := int(q.Proto)
	t.histograms[requestSizes+proto].size(q.Len(), sizeBuckets)
	t.histograms[responseSizes+proto].size(o.size, sizeBuckets)
	if q.Awaited() != nil {
		t.histograms[took].duration(time.Since(q.Arrival), 1, timeBuckets)
		return
	}
	if t.inline == 0 {
		loop.Touch(t)
	}
	t.inline++
}

// EndBatch implements eventloop.Batched.
func (t *tally) EndBatch(d time.Duration) {
	t.histograms[took].duration(d, t.inline, timeBuckets)
	t.inline = 0
}

// outcome is what is counted of a reply.
type outcome struct {
	rcode   int
	plugin  string // which wrote it, "" if none did
	size    int    // in octets, without compression and OPT record
	dropped bool
}

func outcomeOf(w *wire.Reply) outcome {
	switch {
	case w.Holds():
		return outcome{rcode: w.Rcode(), plugin: w.Writer(), size: w.PlainLen()}
	case w.Failed():
		return outcome{rcode: w.Rcode()} // the server writes it
	}
	return outcome{dropped: true}
}

func familyOf(q *wire.Query) uint8 {
	if q.Client.Addr().Is4() {
		return 1
	}
	return 2
}

func (t *tally) request(q *wire.Query) {
	if q.DO() {
		t.do++
	}
	qtype, family := labelled(q.Type()), familyOf(q)
	for i := range t.requests {
		if r := &t.requests[i]; r.qtype == qtype && r.proto == q.Proto && r.family == family {
			r.n++
			return
		}
	}
	t.requests = append(t.requests, requests{qtype, q.Proto, family, 1})
}

// labelled is a type of those that count as qtype does.
func labelled(qtype uint16) uint16 {
	if ownLabel(qtype) {
		return qtype
	}
	return 0
}

func (t *tally) reply(o *outcome) {
	if o.dropped {
		t.unanswered++
	}
	for i := range t.replies {
		if r := &t.replies[i]; r.rcode == o.rcode && r.plugin == o.plugin {
			r.n++
			return
		}
	}
	t.replies = append(t.replies, replies{o.rcode, o.plugin, 1})
}

// countVectors counts what is on no loop.
func (s *Series) countVectors(q *wire.Query, o *outcome) {
	s.Add(Asked{q.Type(), q.Proto, q.Client.Addr().Is4(), q.DO(), q.Len()},
		Replied{o.rcode, o.plugin, o.size, o.dropped, time.Since(q.Arrival).Seconds()})
}

// gather takes what the loops counted: counters go to the vectors, histograms to s.total.
func (s *Series) gather() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops.Each(func(t *tally) {
		for i := range t.requests {
			r := &t.requests[i]
			add(RequestCount, &r.n, s.server, s.zone, s.view, r.proto.String(), families[r.family&1], TypeLabel(r.qtype))
		}
		for i := range t.replies {
			r := &t.replies[i]
			add(ResponseRcode, &r.n, s.server, s.zone, s.view, rcode.ToString(r.rcode), r.plugin)
		}
		add(RequestDo, &t.do, s.server, s.zone, s.view)
		add(Unanswered, &t.unanswered, s.server, s.zone, s.view)
		for i := range t.histograms {
			s.total[i].take(&t.histograms[i])
		}
	})
}

// add moves a count into a vector.
func add(v *prometheus.CounterVec, n *uint64, labels ...string) {
	if *n > 0 {
		v.WithLabelValues(labels...).Add(float64(*n))
		*n = 0
	}
}
