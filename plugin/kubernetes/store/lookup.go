package store

import (
	"net/netip"
	"slices"
)

// The lookups take names as lower-case labels, which they only read, and do not allocate,
// unless they say so.

// Exposed reports whether the namespace exists and is to be seen in DNS.
func (s *Store) Exposed(ns []byte) bool {
	if s.exposed != nil {
		if _, ok := s.exposed[string(ns)]; !ok {
			return false
		}
	}
	return s.namespaces.lookup(ns) != nil
}

// Service returns a service, or nil.
func (s *Store) Service(ns, name []byte) *Service {
	return s.services.lookup(hashName(ns, name), ns, name)
}

// Services returns all services, sorted by namespace and name. It allocates.
func (s *Store) Services() []*Service { return s.services.sorted() }

// ServiceImport returns an imported service, or nil.
func (s *Store) ServiceImport(ns, name []byte) *Service {
	return s.imports.lookup(hashName(ns, name), ns, name)
}

// ServiceByIP returns the service that has the cluster IP, or nil.
func (s *Store) ServiceByIP(a netip.Addr) *Service {
	a = a.Unmap()
	c := s.services.byIP.find(hashAddr(a))
	for svc := c.next(); svc != nil; svc = c.next() {
		if slices.Contains(svc.ips, a) {
			return svc
		}
	}
	return nil
}

// ServicesByExternalIP returns the services that are reached at the address from outside.
func (s *Store) ServicesByExternalIP(a netip.Addr) ExternalServices {
	a = a.Unmap()
	return ExternalServices{s.services.byExternal.find(hashAddr(a)), a}
}

// ExternalServices walks over services with one external address.
type ExternalServices struct {
	c    cursor[Service]
	addr netip.Addr
}

// Next returns the next service, or nil after the last.
func (x *ExternalServices) Next() *Service {
	for svc := x.c.next(); svc != nil; svc = x.c.next() {
		if slices.Contains(svc.ExternalIPs(), x.addr) {
			return svc
		}
	}
	return nil
}

// Slices returns the slices that hold the endpoints of a service.
func (s *Store) Slices(ns, service []byte) Slices {
	return Slices{c: s.slices.byService.find(hashName(ns, service)), ns: ns, service: service}
}

// ImportSlices returns the slices that hold the endpoints of an imported service, of all clusters.
func (s *Store) ImportSlices(ns, service []byte) Slices {
	return Slices{c: s.slices.byImport.find(hashName(ns, service)), ns: ns, service: service, imported: true}
}

// Slices walks over the slices of a service.
type Slices struct {
	c           cursor[Slice]
	ns, service []byte
	imported    bool
}

// Next returns the next slice, or nil after the last.
func (x *Slices) Next() *Slice {
	for s := x.c.next(); s != nil; s = x.c.next() {
		name := s.service
		if x.imported {
			name = s.imported
		}
		if name.of(s.text) == string(x.service) && s.namespace == string(x.ns) {
			return s
		}
	}
	return nil
}

// SlicesByIP returns the slices with an endpoint at the address: see Slice.Find for which.
func (s *Store) SlicesByIP(a netip.Addr) SlicesByIP {
	return SlicesByIP{s.slices.byIP.find(hashAddr(a)), a.As16()}
}

// SlicesByIP walks over the slices with one address.
type SlicesByIP struct {
	c    cursor[sliceRef]
	addr [16]byte
}

// Next returns the next slice, or nil after the last.
func (x *SlicesByIP) Next() *Slice {
	for r := x.c.next(); r != nil; r = x.c.next() {
		if s := r.now.Load(); s.find(x.addr, 0) >= 0 {
			return s
		}
	}
	return nil
}

// Use says which addresses Addrs is about.
type Use uint8

// The uses of addresses.
const (
	Inside  Use = iota // cluster IPs, and endpoints of services
	Named              // the same, but of the endpoints only those with a hostname
	Outside            // those at which services are reached from outside
)

// Addrs calls f with each address of a use, and the namespace that it is in, in no order and some of them several times. It
// looks at everything there is.
func (s *Store) Addrs(use Use, f func(ns string, a netip.Addr)) {
	s.services.byName.each(func(_ uint32, svc *Service) {
		all := svc.ips
		if use == Outside {
			all = svc.ExternalIPs()
		}
		for _, a := range all {
			f(svc.namespace, a)
		}
	})
	if use == Outside {
		return
	}
	s.slices.byService.each(func(_ uint32, sl *Slice) {
		for i := range sl.ends {
			if use != Named || sl.ends[i].hostname != 0 {
				f(sl.namespace, sl.Addr(i))
			}
		}
	})
}

// Pods returns the pods that have the address; those of a node's network share one.
func (s *Store) Pods(a netip.Addr) Pods {
	a = a.Unmap()
	return Pods{s.pods.byIP.find(hashAddr(a)), a}
}

// Pods walks over the pods with one address.
type Pods struct {
	c    cursor[Pod]
	addr netip.Addr
}

// Next returns the next pod, or nil after the last.
func (x *Pods) Next() *Pod {
	for p := x.c.next(); p != nil; p = x.c.next() {
		if slices.Contains(p.ips, x.addr) {
			return p
		}
	}
	return nil
}

// PodAt returns the pod that owns the address alone, or nil: of several that share
// it, none can be told from the others by it.
func (s *Store) PodAt(a netip.Addr) *Pod {
	all := s.Pods(a)
	p := all.Next()
	if p == nil || all.Next() != nil {
		return nil
	}
	return p
}

// HasPod reports whether a pod in the namespace has the address.
func (s *Store) HasPod(ns []byte, a netip.Addr) bool {
	all := s.Pods(a)
	for p := all.Next(); p != nil; p = all.Next() {
		if p.namespace == string(ns) {
			return true
		}
	}
	return false
}
