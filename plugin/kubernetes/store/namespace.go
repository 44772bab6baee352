package store

import "github.com/coredns/coredns/plugin/kubernetes/client/lean"

// namespace is a namespace that passes the selector.
type namespace struct {
	name string
	seen uint32
}

// namespaceWriter is the writer of namespaces.
type namespaceWriter struct {
	store   *Store
	scratch lean.Namespace
	round   uint32
	byName  table[namespace]
}

func (w *namespaceWriter) init(s *Store) { w.store, w.round = s, 1 }

func (w *namespaceWriter) object() lean.Object { return &w.scratch }

func (w *namespaceWriter) begin() { w.round++ }

func (w *namespaceWriter) putScratch(live bool) { w.put(&w.scratch, live) }

func (w *namespaceWriter) put(o *lean.Namespace, _ bool) {
	if old := w.lookup(o.Meta.Name); old != nil {
		old.seen = w.round
		return
	}
	w.byName.put(hashName(nil, o.Meta.Name), &namespace{name: string(o.Meta.Name), seen: w.round})
	w.store.generation.Add(1) // no serial: a namespace alone has no records
}

func (w *namespaceWriter) drop(m *lean.Meta) {
	if old := w.lookup(m.Name); old != nil {
		w.remove(old)
	}
}

func (w *namespaceWriter) remove(old *namespace) {
	w.byName.remove(hashNameString("", old.name), old)
	w.store.generation.Add(1)
}

func (w *namespaceWriter) sweep() int {
	return sweep(&w.byName, func(n *namespace) bool { return n.seen != w.round }, w.remove)
}

func (w *namespaceWriter) lookup(name []byte) *namespace {
	c := w.byName.find(hashName(nil, name))
	for n := c.next(); n != nil; n = c.next() {
		if n.name == string(name) {
			return n
		}
	}
	return nil
}
