package kubernetes

import (
	"net/netip"

	"github.com/coredns/coredns/plugin/kubernetes/store"
)

// endpoints walks over the endpoints that a name stands for, slice by slice. It is given by plan.endpoints.
type endpoints struct {
	name      *name
	direction direction // of name, but anywhere if nothing is where endpoints are preferred
	podNames  bool

	slices store.Slices
	slice  *store.Slice // nil before the first
	ports  int          // ports of slice that the name asks for
	i      int          // the endpoint in slice

	addr netip.Addr // of an endpoint that is called by its address
}

// endpoints returns a walk over the endpoints that n stands for. It ends before the first if there are none.
func (p *plan) endpoints(s *store.Store, n *name, multicluster bool) endpoints {
	e := p.walk(s, n, n.direction, multicluster)
	if n.direction == prefer {
		d := anywhere
		if e.next() {
			d = pin
		}
		return p.walk(s, n, d, multicluster)
	}
	return e
}

func (p *plan) walk(s *store.Store, n *name, d direction, multicluster bool) endpoints {
	e := endpoints{name: n, direction: d, podNames: p.podNames, i: -1}
	if e.slices = s.Slices(n.namespace, n.service); multicluster {
		e.slices = s.ImportSlices(n.namespace, n.service)
	}
	if n.endpoint == nil {
		return e
	}
	if addr, ok := dashedAddr(n.endpoint); ok {
		var buf [maxDashed]byte
		if string(appendDashed(buf[:0], addr)) == string(n.endpoint) { // it has but one name
			e.addr = addr
		}
	}
	return e
}

// next goes on to the next endpoint and reports whether there is one.
func (e *endpoints) next() bool {
	for {
		if e.i++; e.slice == nil || e.i >= e.slice.Len() {
			if !e.nextSlice() {
				return false
			}
		}
		if e.chosen() {
			return true
		}
	}
}

// nextSlice goes to the first endpoint of the next slice that has endpoints, and ports that are asked for.
func (e *endpoints) nextSlice() bool {
	for e.slice = e.slices.Next(); e.slice != nil; e.slice = e.slices.Next() {
		if e.slice.Len() == 0 {
			continue
		}
		if _, cluster := e.slice.Import(); e.name.cluster != nil && string(e.name.cluster) != cluster {
			continue
		}
		if e.ports = countPorts(e.slice.Ports(), e.name, true); e.ports > 0 {
			e.i = 0
			return true
		}
	}
	return false
}

// chosen reports whether the endpoint at hand is one that the name stands for.
func (e *endpoints) chosen() bool {
	if e.name.endpoint == nil && e.direction == anywhere {
		return true
	}
	end := e.slice.Endpoint(e.i)
	if e.direction != anywhere {
		return end.Zone != "" && isTopology(e.name.topology, end.Zone)
	}
	if label := endpointLabel(&end, e.podNames); label != "" {
		return label == string(e.name.endpoint)
	}
	return end.Addr == e.addr
}

// endpointLabel returns the label that an endpoint has of its hostname or its pod, or "": then it is called by its address.
func endpointLabel(e *store.Endpoint, podNames bool) string {
	if e.Hostname != "" {
		return e.Hostname
	}
	if podNames {
		return e.Target
	}
	return ""
}

// appendLabel appends an endpoint's name as a label in wire form.
func appendLabel(b []byte, e *store.Endpoint, podNames bool) []byte {
	at := len(b)
	b = append(b, 0)
	if label := endpointLabel(e, podNames); label != "" {
		b = append(b, label...)
	} else {
		b = appendDashed(b, e.Addr)
	}
	b[at] = byte(len(b) - at - 1)
	return b
}
