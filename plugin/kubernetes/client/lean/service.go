package lean

import "net/netip"

// Service is what DNS needs of a v1 Service.
type Service struct {
	Meta Meta
	Type []byte // ClusterIP, NodePort, LoadBalancer, ExternalName
	// Headless is set if the first cluster IP is "None".
	Headless bool
	// ClusterIPs are spec.clusterIPs, or spec.clusterIP where those are missing.
	ClusterIPs   []netip.Addr
	ExternalName []byte
	// ExternalIPs are spec.externalIPs, then the load balancer's addresses;
	// ExternalHosts are what a load balancer names instead of an address.
	ExternalIPs   []netip.Addr
	ExternalHosts [][]byte
	Ports         []Port

	clusterIP []byte
	listed    bool // spec.clusterIPs is there
}

// Metadata implements Object.
func (s *Service) Metadata() *Meta { return &s.Meta }

func (s *Service) reset() {
	s.Meta.reset()
	*s = Service{Meta: s.Meta, ClusterIPs: s.ClusterIPs[:0], ExternalIPs: s.ExternalIPs[:0],
		ExternalHosts: s.ExternalHosts[:0], Ports: s.Ports[:0]}
}

// Decode implements Object.
func (s *Service) Decode(b []byte, e Encoding) error {
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
			f.within(s.spec)
		case 3:
			f.within(s.status)
		}
	}
	s.finish()
	return f.err
}

// Field numbers of ServiceSpec.
const (
	specPorts        = 1
	specClusterIP    = 3
	specType         = 4
	specExternalIPs  = 5
	specExternalName = 10
	specClusterIPs   = 18
)

func (s *Service) spec(b []byte) error {
	f := over(b)
	for f.next() {
		switch f.num {
		case specPorts:
			s.Ports = appendPort(s.Ports, f)
		case specClusterIP:
			s.clusterIP = f.bytes()
		case specType:
			s.Type = f.bytes()
		case specExternalIPs:
			s.external(f.bytes())
		case specExternalName:
			s.ExternalName = f.bytes()
		case specClusterIPs:
			s.cluster(f.bytes())
		}
	}
	return f.err
}

// status reads status.loadBalancer (1), its ingress (1), their ip (1) and hostname (2).
func (s *Service) status(b []byte) error {
	f := over(b)
	for f.next() {
		if f.num == 1 {
			f.within(s.balancer)
		}
	}
	return f.err
}

func (s *Service) balancer(b []byte) error {
	f := over(b)
	for f.next() {
		if f.num == 1 {
			f.within(s.ingress)
		}
	}
	return f.err
}

func (s *Service) ingress(b []byte) error {
	var ip, host []byte
	f := over(b)
	for f.next() {
		switch f.num {
		case 1:
			ip = f.bytes()
		case 2:
			host = f.bytes()
		}
	}
	s.reach(ip, host)
	return f.err
}

// cluster adds one of spec.clusterIPs.
func (s *Service) cluster(ip []byte) {
	first := !s.listed
	s.listed = true
	if isNone(ip) {
		s.Headless = s.Headless || first
		return
	}
	s.ClusterIPs = appendAddr(s.ClusterIPs, ip)
}

// external adds one of spec.externalIPs.
func (s *Service) external(ip []byte) { s.ExternalIPs = appendAddr(s.ExternalIPs, ip) }

// reach adds where a load balancer is reached.
func (s *Service) reach(ip, host []byte) {
	switch {
	case len(ip) > 0:
		s.ExternalIPs = appendAddr(s.ExternalIPs, ip)
	case len(host) > 0:
		s.ExternalHosts = append(s.ExternalHosts, host)
	}
}

func (s *Service) finish() {
	if !s.listed {
		s.cluster(s.clusterIP)
	}
}
