package store

import (
	"net/netip"
	"slices"
	"sort"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Service is a service, or an imported one. It never changes.
type Service struct {
	namespace, name string
	externalName    string
	ips             []netip.Addr
	ports           []Port // shared by all services that have the same
	reach           *reach // nil for most
	headless        bool
	external        bool   // of type ExternalName
	seen            uint32 // round in which the API last told of it; writer only
}

// reach is where a service is reached from outside.
type reach struct {
	addrs []netip.Addr
	hosts []string
}

// Namespace returns the namespace that the service is in.
func (s *Service) Namespace() string { return s.namespace }

// Name returns the service's name.
func (s *Service) Name() string { return s.name }

// ClusterIPs returns the service's own addresses, the primary family first: none if it is
// headless or external. The slice is not to be changed; that holds for all that records return.
func (s *Service) ClusterIPs() []netip.Addr { return s.ips }

// Headless reports whether the service has no address of its own and stands for its endpoints.
func (s *Service) Headless() bool { return s.headless }

// ExternalName returns the name that a service of type ExternalName stands for; ok
// tells if it is of that type.
func (s *Service) ExternalName() (name string, ok bool) { return s.externalName, s.external }

// Ports returns the service's ports, none if it has none.
func (s *Service) Ports() []Port { return s.ports }

// ExternalIPs returns the addresses at which the service is reached from outside: its
// external IPs, then its load balancer's.
func (s *Service) ExternalIPs() []netip.Addr {
	if s.reach == nil {
		return nil
	}
	return s.reach.addrs
}

// ExternalHosts returns the names that the service's load balancer has instead of addresses.
func (s *Service) ExternalHosts() []string {
	if s.reach == nil {
		return nil
	}
	return s.reach.hosts
}

func (s *Service) isNamed(ns, name []byte) bool {
	return s.name == string(name) && s.namespace == string(ns)
}

// serviceWriter is the writer of services and the tables that lead to them.
type serviceWriter struct {
	store   *Store
	scratch lean.Service
	intern  interner
	round   uint32

	byName, byIP, byExternal table[Service]
}

func (w *serviceWriter) init(s *Store) {
	w.store, w.round = s, 1
	id := func(s *Service) uint64 { return hashNameString(s.namespace, s.name) }
	w.byIP.id, w.byExternal.id = id, id
}

func (w *serviceWriter) object() lean.Object { return &w.scratch }

func (w *serviceWriter) begin() { w.round++ }

func (w *serviceWriter) putScratch(live bool) { w.put(&w.scratch, live) }

func (w *serviceWriter) put(o *lean.Service, _ bool) {
	if !isLabel(o.Meta.Name) || !isLabel(o.Meta.Namespace) {
		return // no record can have its name
	}
	hash := hashName(o.Meta.Namespace, o.Meta.Name)
	old := w.lookup(hash, o.Meta.Namespace, o.Meta.Name)
	next := w.build(o, old)
	next.seen = w.round
	if old == nil {
		w.byName.put(hash, next)
		indexAddrs(&w.byIP, nil, next, nil, next.ips)
		indexAddrs(&w.byExternal, nil, next, nil, next.ExternalIPs())
		w.tell(next)
		return
	}
	internal, external := differ(old, next)
	if !internal && !external {
		old.seen = w.round
		return
	}
	w.byName.swap(hash, old, next)
	indexAddrs(&w.byIP, old, next, old.ips, next.ips)
	indexAddrs(&w.byExternal, old, next, old.ExternalIPs(), next.ExternalIPs())
	if internal {
		w.store.changed(Internal)
	}
	if external {
		w.store.changed(External)
	}
}

// build makes a record. What it has in common with old it shares with it.
func (w *serviceWriter) build(o *lean.Service, old *Service) *Service {
	s := &Service{
		ports:    w.intern.portSet(o.Ports),
		headless: o.Headless,
		external: string(o.Type) == "ExternalName",
	}
	if s.external {
		s.externalName = string(o.ExternalName)
	}
	if old != nil {
		s.namespace, s.name = old.namespace, old.name
	} else {
		s.namespace, s.name = w.intern.text(o.Meta.Namespace), string(o.Meta.Name)
	}
	if old != nil && slices.Equal(old.ips, o.ClusterIPs) {
		s.ips = old.ips
	} else {
		s.ips = slices.Clip(slices.Clone(o.ClusterIPs))
	}
	if len(o.ExternalIPs)+len(o.ExternalHosts) > 0 {
		s.reach = &reach{addrs: slices.Clone(o.ExternalIPs)}
		for _, h := range o.ExternalHosts {
			if _, err := wire.AppendName(nil, string(h)); err == nil {
				s.reach.hosts = append(s.reach.hosts, string(h))
			}
		}
	}
	return s
}

// differ tells which zones a change from a to b concerns: ports concern both.
func differ(a, b *Service) (internal, external bool) {
	if !slices.Equal(a.ports, b.ports) {
		return true, true
	}
	internal = a.headless != b.headless || a.external != b.external || a.externalName != b.externalName || !slices.Equal(a.ips, b.ips)
	external = !slices.Equal(a.ExternalIPs(), b.ExternalIPs()) || !slices.Equal(a.ExternalHosts(), b.ExternalHosts())
	return internal, external
}

// tell raises the serials of the zones in which a service has come or gone.
func (w *serviceWriter) tell(s *Service) {
	w.store.changed(Internal)
	if s.reach != nil {
		w.store.changed(External)
	}
}

func (w *serviceWriter) drop(m *lean.Meta) {
	if old := w.lookup(hashName(m.Namespace, m.Name), m.Namespace, m.Name); old != nil {
		w.remove(old)
	}
}

func (w *serviceWriter) remove(old *Service) {
	w.byName.remove(hashNameString(old.namespace, old.name), old)
	indexAddrs(&w.byIP, old, nil, old.ips, nil)
	indexAddrs(&w.byExternal, old, nil, old.ExternalIPs(), nil)
	w.tell(old)
}

func (w *serviceWriter) retain(m *lean.Meta) {
	if old := w.lookup(hashName(m.Namespace, m.Name), m.Namespace, m.Name); old != nil {
		old.seen = w.round
	}
}

func (w *serviceWriter) sweep() int {
	return sweep(&w.byName, func(s *Service) bool { return s.seen != w.round }, w.remove)
}

func (w *serviceWriter) lookup(hash uint64, ns, name []byte) *Service {
	c := w.byName.find(hash)
	for s := c.next(); s != nil; s = c.next() {
		if s.isNamed(ns, name) {
			return s
		}
	}
	return nil
}

// sorted returns all services in the order of their namespaces and names.
func (w *serviceWriter) sorted() []*Service {
	var all []*Service
	w.byName.each(func(_ uint32, s *Service) { all = append(all, s) })
	sort.Slice(all, func(i, j int) bool {
		if all[i].namespace != all[j].namespace {
			return all[i].namespace < all[j].namespace
		}
		return all[i].name < all[j].name
	})
	return all
}

// indexAddrs moves a table by address from the record old with the addresses was to the
// record next with the addresses is. Either record may be nil.
func indexAddrs[R any](t *table[R], old, next *R, was, is []netip.Addr) {
	for i, a := range is {
		switch {
		case slices.Contains(is[:i], a):
		case slices.Contains(was, a):
			t.swap(hashAddr(a), old, next)
		default:
			t.put(hashAddr(a), next)
		}
	}
	for _, a := range was { // where next has taken its place, old is no longer found
		t.remove(hashAddr(a), old)
	}
}

// sweep removes the records that are stale and returns their number.
func sweep[R any](t *table[R], stale func(*R) bool, remove func(*R)) int {
	var gone []*R
	t.each(func(_ uint32, r *R) {
		if stale(r) {
			gone = append(gone, r)
		}
	})
	for _, r := range gone {
		remove(r)
	}
	return len(gone)
}
