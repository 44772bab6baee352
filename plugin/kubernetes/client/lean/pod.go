package lean

import "net/netip"

// Pod is what DNS needs of a v1 Pod.
type Pod struct {
	Meta Meta
	// IPs are status.podIP and the others of status.podIPs.
	IPs []netip.Addr
	// Finished is set in the phases in which a pod no longer owns its addresses.
	Finished bool
}

// Metadata implements Object.
func (p *Pod) Metadata() *Meta { return &p.Meta }

func (p *Pod) reset() {
	p.Meta.reset()
	p.IPs, p.Finished = p.IPs[:0], false
}

// Decode implements Object.
func (p *Pod) Decode(b []byte, e Encoding) error {
	p.reset()
	if e == JSON {
		return p.json(b)
	}
	f := over(b)
	for f.next() {
		switch f.num {
		case 1:
			f.within(p.Meta.proto)
		case 3:
			f.within(p.status)
		}
	}
	return f.err
}

// Field numbers of PodStatus.
const (
	statusPhase  = 1
	statusPodIP  = 6
	statusPodIPs = 12
)

func (p *Pod) status(b []byte) error {
	f := over(b)
	for f.next() {
		switch f.num {
		case statusPhase:
			p.phase(f.bytes())
		case statusPodIP:
			p.own(f.bytes())
		case statusPodIPs:
			ip := over(f.bytes())
			for ip.next() {
				if ip.num == 1 {
					p.own(ip.bytes())
				}
			}
			if ip.err != nil {
				return ip.err
			}
		}
	}
	return f.err
}

func (p *Pod) phase(b []byte) {
	switch string(b) {
	case "Succeeded", "Failed", "Unknown":
		p.Finished = true
	}
}

// own adds an address, once.
func (p *Pod) own(b []byte) {
	a, ok := Addr(b)
	if !ok {
		return
	}
	for _, have := range p.IPs {
		if have == a {
			return
		}
	}
	p.IPs = append(p.IPs, a)
}
