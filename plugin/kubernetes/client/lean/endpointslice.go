package lean

import "net/netip"

// EndpointSlice is what DNS needs of a discovery.k8s.io/v1 EndpointSlice.
type EndpointSlice struct {
	Meta Meta
	// Endpoints are the ready ones, one for each address. A slice of addressType
	// FQDN has none: what its names mean is undefined, and the type is retired.
	Endpoints []Endpoint
	Ports     []Port

	addrs []netip.Addr // of the endpoint being read
}

// Endpoint is one address of a ready endpoint.
type Endpoint struct {
	Addr       netip.Addr
	Hostname   []byte
	Node, Zone []byte
	Target     []byte // the name of what targetRef points at
}

// Labels and annotations that say what a slice belongs to.
const (
	LabelService   = "kubernetes.io/service-name"
	LabelMCService = "multicluster.kubernetes.io/service-name"
	LabelMCCluster = "multicluster.kubernetes.io/source-cluster"
	// AnnotationTrigger is when the change happened that led to the slice's state, RFC 3339.
	AnnotationTrigger = "endpoints.kubernetes.io/last-change-trigger-time"
)

// Metadata implements Object.
func (s *EndpointSlice) Metadata() *Meta { return &s.Meta }

func (s *EndpointSlice) reset() {
	s.Meta.reset()
	s.Endpoints, s.Ports = s.Endpoints[:0], s.Ports[:0]
}

// Decode implements Object.
func (s *EndpointSlice) Decode(b []byte, e Encoding) error {
	s.reset()
	if e == JSON {
		return s.json(b)
	}
	f := over(b)
	for f.next() {
		switch f.num {
		case 1:
			f.within(s.Meta.proto)
		case 2:
			f.within(s.endpoint)
		case 3:
			s.Ports = appendPort(s.Ports, f)
		}
	}
	return f.err
}

// Field numbers of Endpoint.
const (
	endpointAddresses  = 1
	endpointConditions = 2
	endpointHostname   = 3
	endpointTargetRef  = 4
	endpointNodeName   = 6
	endpointZone       = 7
)

func (s *EndpointSlice) endpoint(b []byte) error {
	var e Endpoint
	ready := true // also if nothing is said about it
	s.addrs = s.addrs[:0]
	f := over(b)
	for f.next() {
		switch f.num {
		case endpointAddresses:
			s.addrs = appendAddr(s.addrs, f.bytes())
		case endpointConditions:
			c := over(f.bytes())
			for c.next() {
				if c.num == 1 {
					ready = c.varint() != 0
				}
			}
			if c.err != nil {
				return c.err
			}
		case endpointHostname:
			e.Hostname = f.bytes()
		case endpointTargetRef:
			t := over(f.bytes())
			for t.next() {
				if t.num == 3 {
					e.Target = t.bytes()
				}
			}
			if t.err != nil {
				return t.err
			}
		case endpointNodeName:
			e.Node = f.bytes()
		case endpointZone:
			e.Zone = f.bytes()
		}
	}
	if ready {
		s.add(e)
	}
	return f.err
}

// add adds e once for each of its addresses.
func (s *EndpointSlice) add(e Endpoint) {
	for _, e.Addr = range s.addrs {
		s.Endpoints = append(s.Endpoints, e)
	}
}
