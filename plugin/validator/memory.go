package validator

import (
	"maps"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/steady"
)

// memory keeps what was found out of zones and RRsets. It has two generations: when the younger one is full, the elder
// one is forgotten. What is found in the elder one moves into the younger one.
type memory struct {
	nodes  generations[string, keptNode]
	checks generations[validate.Sum, validate.Held]
	walked generations[string, time.Time] // when names may be asked for anew once more, as zones may begin elsewhere

	renewed generations[string, time.Time] // when keys of zones may be fetched again once more
	renew   func(zone string)              // fetches them behind the client; nil if they are fetched when their time is over
	passed  func() time.Duration
}

// keptNode is a Node with when it ends as passed tells: the time by which it was found out stands still if it is a
// validation_time, and while the machine is asleep.
type keptNode struct {
	*validate.Node
	ends time.Duration
}

func passed() time.Duration { return steady.Passed(time.Now()) + clock.Offset() }

// Octets of a generation.
const (
	nodeOctets  = 8 << 20
	checkOctets = 4 << 20
	walkOctets  = 1 << 20
)

func newMemory() *memory {
	m := &memory{passed: passed}
	m.nodes.most, m.checks.most, m.walked.most, m.renewed.most = nodeOctets, checkOctets, walkOctets, walkOctets
	return m
}

// Node implements validate.Memory.
func (m *memory) Node(name string, now time.Time) *validate.Node {
	n, ok := m.nodes.get(name)
	if !ok || !n.Expires.After(now) || n.ends <= m.passed() {
		return nil
	}
	if m.renew != nil && n.Ages(now) && once(&m.renewed, name, now, renewPause) {
		m.renew(name)
	}
	return n.Node
}

// KeepNode implements validate.Memory.
func (m *memory) KeepNode(name string, n *validate.Node) {
	m.nodes.put(name, keptNode{n, m.passed() + n.Lasts()}, len(name)+n.Size())
}

const checkSize = 100 // octets of what is known of an RRset

// Check implements validate.Memory.
func (m *memory) Check(sum validate.Sum) (validate.Held, bool) { return m.checks.get(sum) }

// KeepCheck implements validate.Memory.
func (m *memory) KeepCheck(sum validate.Sum, h validate.Held) { m.checks.put(sum, h, checkSize) }

const walkSize = 100 // octets of a time that belongs to a name, without the name

// walk reports whether the chain may be walked anew at a name, which it may once in a while: whoever makes bogus replies
// must not make queries of each of them.
func (m *memory) walk(name string, now time.Time, every time.Duration) bool {
	return once(&m.walked, name, now, every)
}

// once reports whether it was not reported for a name since so long, and notes that it was.
func once(g *generations[string, time.Time], name string, now time.Time, every time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until, ok := g.find(name); ok && until.After(now) && until.Sub(now) <= every {
		return false
	}
	g.add(name, now.Add(every), len(name)+walkSize)
	return true
}

// generations is a map that forgets. Any number of goroutines may use it.
type generations[K comparable, V any] struct {
	mu     sync.Mutex
	young  map[K]sized[V]
	old    map[K]sized[V]
	octets int // of young
	most   int
}

// sized is a value with its octets.
type sized[V any] struct {
	value V
	size  int
}

func (g *generations[K, V]) get(k K) (v V, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.find(k)
}

// find is get; mu is held.
func (g *generations[K, V]) find(k K) (v V, ok bool) {
	s, ok := g.young[k]
	if !ok {
		if s, ok = g.old[k]; ok {
			g.add(k, s.value, s.size)
		}
	}
	return s.value, ok
}

func (g *generations[K, V]) put(k K, v V, size int) {
	g.mu.Lock()
	g.add(k, v, size)
	g.mu.Unlock()
}

// add is put; mu is held.
func (g *generations[K, V]) add(k K, v V, size int) {
	if g.octets+size > g.most || g.young == nil {
		g.old, g.young, g.octets = g.young, map[K]sized[V]{}, 0
	}
	g.octets += size - g.young[k].size
	g.young[k] = sized[V]{v, size}
}

// forget forgets all: who is trusted has changed.
func (m *memory) forget() {
	m.nodes.forget()
	m.checks.forget()
}

// forgetIf forgets what f reports true for.
func (g *generations[K, V]) forgetIf(f func(K) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gone := func(k K, _ sized[V]) bool { return f(k) }
	maps.DeleteFunc(g.young, gone) // its octets count on, until it is full
	maps.DeleteFunc(g.old, gone)
}

func (g *generations[K, V]) forget() {
	g.mu.Lock()
	g.young, g.old, g.octets = nil, nil, 0
	g.mu.Unlock()
}
