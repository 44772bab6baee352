package cache

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// lazyCounter is a counter of a vector that is made when it first counts, so that
// nothing is told that never happened.
type lazyCounter struct {
	vec    *prometheus.CounterVec
	labels []string
	made   atomic.Pointer[prometheus.Counter]
}

func (l *lazyCounter) set(vec *prometheus.CounterVec, labels ...string) {
	l.vec, l.labels = vec, labels
}

func (l *lazyCounter) counter() prometheus.Counter {
	if c := l.made.Load(); c != nil {
		return *c
	}
	c := l.vec.WithLabelValues(l.labels...)
	l.made.Store(&c)
	return c
}

// Inc counts one.
func (l *lazyCounter) Inc() { l.counter().Inc() }

// Add counts v.
func (l *lazyCounter) Add(v float64) { l.counter().Add(v) }
