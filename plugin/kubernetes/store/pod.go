package store

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
)

// Pod is a pod that has addresses. It never changes.
type Pod struct {
	namespace, name string
	ips             []netip.Addr
	labels          []Label
	seen            uint32
}

// Label is a label of a pod.
type Label struct{ Key, Value string }

// Namespace returns the namespace that the pod is in.
func (p *Pod) Namespace() string { return p.namespace }

// Name returns the pod's name.
func (p *Pod) Name() string { return p.name }

// IPs returns the pod's addresses.
func (p *Pod) IPs() []netip.Addr { return p.ips }

// Labels returns the pod's labels in the order of their keys, none unless Config.PodLabels is set.
func (p *Pod) Labels() []Label { return p.labels }

// podWriter is the writer of pods and the tables that lead to them.
type podWriter struct {
	store   *Store
	scratch lean.Pod
	intern  interner
	round   uint32

	byName, byIP table[Pod]
}

func (w *podWriter) init(s *Store) {
	w.store, w.round = s, 1
	w.byIP.id = func(p *Pod) uint64 { return hashNameString(p.namespace, p.name) }
}

func (w *podWriter) object() lean.Object { return &w.scratch }

func (w *podWriter) begin() { w.round++ }

func (w *podWriter) putScratch(live bool) { w.put(&w.scratch, live) }

func (w *podWriter) put(o *lean.Pod, _ bool) {
	hash := hashName(o.Meta.Namespace, o.Meta.Name)
	old := w.lookup(hash, &o.Meta)
	switch {
	case o.Finished: // the API leaves these out, if it knows how to
		if old != nil {
			w.remove(old)
		}
		return
	case o.Meta.Deleting: // what was known of it stays until it is gone
		if old != nil {
			old.seen = w.round
		}
		return
	case old != nil && slices.Equal(old.ips, o.IPs) && w.sameLabels(old, &o.Meta):
		old.seen = w.round
		return
	}
	next := &Pod{ips: slices.Clip(slices.Clone(o.IPs)), labels: w.labels(&o.Meta), seen: w.round}
	if old == nil {
		next.namespace, next.name = w.intern.text(o.Meta.Namespace), string(o.Meta.Name)
		w.byName.put(hash, next)
		indexAddrs(&w.byIP, nil, next, nil, next.ips)
		w.store.changed(Internal)
		return
	}
	next.namespace, next.name = old.namespace, old.name
	w.byName.swap(hash, old, next)
	indexAddrs(&w.byIP, old, next, old.ips, next.ips)
	if !slices.Equal(old.ips, next.ips) {
		w.store.changed(Internal)
	}
}

func (w *podWriter) labels(m *lean.Meta) []Label {
	if !w.store.config.PodLabels || len(m.Labels) == 0 {
		return nil
	}
	all := make([]Label, len(m.Labels))
	for i, l := range m.Labels {
		all[i] = Label{w.intern.text(l.Key), w.intern.text(l.Value)}
	}
	return all
}

func (w *podWriter) sameLabels(old *Pod, m *lean.Meta) bool {
	if !w.store.config.PodLabels {
		return true
	}
	return slices.EqualFunc(old.labels, m.Labels, func(l Label, p lean.Pair) bool {
		return l.Key == string(p.Key) && l.Value == string(p.Value)
	})
}

func (w *podWriter) drop(m *lean.Meta) {
	if old := w.lookup(hashName(m.Namespace, m.Name), m); old != nil {
		w.remove(old)
	}
}

func (w *podWriter) remove(old *Pod) {
	w.byName.remove(hashNameString(old.namespace, old.name), old)
	indexAddrs(&w.byIP, old, nil, old.ips, nil)
	w.store.changed(Internal)
}

func (w *podWriter) retain(m *lean.Meta) {
	if old := w.lookup(hashName(m.Namespace, m.Name), m); old != nil {
		old.seen = w.round
	}
}

func (w *podWriter) sweep() int {
	return sweep(&w.byName, func(p *Pod) bool { return p.seen != w.round }, w.remove)
}

func (w *podWriter) lookup(hash uint64, m *lean.Meta) *Pod {
	c := w.byName.find(hash)
	for p := c.next(); p != nil; p = c.next() {
		if p.name == string(m.Name) && p.namespace == string(m.Namespace) {
			return p
		}
	}
	return nil
}
