package store

import (
	"slices"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
)

// importWriter is the writer of imported services. They have the form of services: an
// imported one has neither an external name nor addresses outside.
type importWriter struct {
	store   *Store
	scratch lean.ServiceImport
	intern  interner
	round   uint32
	byName  table[Service]
}

func (w *importWriter) init(s *Store) { w.store, w.round = s, 1 }

func (w *importWriter) object() lean.Object { return &w.scratch }

func (w *importWriter) begin() { w.round++ }

func (w *importWriter) putScratch(live bool) { w.put(&w.scratch, live) }

func (w *importWriter) put(o *lean.ServiceImport, _ bool) {
	hash := hashName(o.Meta.Namespace, o.Meta.Name)
	old := w.lookup(hash, o.Meta.Namespace, o.Meta.Name)
	next := &Service{
		namespace: w.intern.text(o.Meta.Namespace),
		name:      string(o.Meta.Name),
		ips:       slices.Clip(slices.Clone(o.IPs)),
		ports:     w.intern.portSet(o.Ports),
		headless:  o.Headless,
		seen:      w.round,
	}
	if old == nil {
		w.byName.put(hash, next)
		w.store.changed(Multicluster)
		return
	}
	if internal, _ := differ(old, next); !internal {
		old.seen = w.round
		return
	}
	w.byName.swap(hash, old, next)
	w.store.changed(Multicluster)
}

func (w *importWriter) drop(m *lean.Meta) {
	if old := w.lookup(hashName(m.Namespace, m.Name), m.Namespace, m.Name); old != nil {
		w.remove(old)
	}
}

func (w *importWriter) remove(old *Service) {
	w.byName.remove(hashNameString(old.namespace, old.name), old)
	w.store.changed(Multicluster)
}

func (w *importWriter) retain(m *lean.Meta) {
	if old := w.lookup(hashName(m.Namespace, m.Name), m.Namespace, m.Name); old != nil {
		old.seen = w.round
	}
}

func (w *importWriter) sweep() int {
	return sweep(&w.byName, func(s *Service) bool { return s.seen != w.round }, w.remove)
}

func (w *importWriter) lookup(hash uint64, ns, name []byte) *Service {
	c := w.byName.find(hash)
	for s := c.next(); s != nil; s = c.next() {
		if s.isNamed(ns, name) {
			return s
		}
	}
	return nil
}
