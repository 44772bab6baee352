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
	w.tell(string(o.Meta.Name))
}

func (w *namespaceWriter) drop(m *lean.Meta) {
	if old := w.lookup(m.Name); old != nil {
		w.remove(old)
	}
}

func (w *namespaceWriter) remove(old *namespace) {
	w.byName.remove(hashNameString("", old.name), old)
	w.tell(old.name)
}

// A namespace alone has no records. One that begins or ends to pass the selector while it has services brings these with
// it, or takes them away, though they do not change.

// tell raises the serials of the zones in which a namespace that has come or gone has services.
func (w *namespaceWriter) tell(name string) {
	s := w.store
	s.generation.Add(1)
	if !s.HasSynced() { // nobody has had the zones yet
		return
	}
	var internal, external, multicluster bool
	s.services.byName.each(func(_ uint32, svc *Service) {
		if svc.namespace == name {
			internal, external = true, external || svc.reach != nil
		}
	})
	s.imports.byName.each(func(_ uint32, svc *Service) { multicluster = multicluster || svc.namespace == name })
	for zone, concerned := range map[Zone]bool{Internal: internal, External: external, Multicluster: multicluster} {
		if concerned {
			s.changed(zone)
		}
	}
}

func (w *namespaceWriter) retain(m *lean.Meta) {
	if old := w.lookup(m.Name); old != nil {
		old.seen = w.round
	}
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
