package kubernetes

import (
	"net"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// selection leaves out services that would not be seen in an answer: a thousand endpoints with a hundred ports make a
// hundred thousand services, and a message has room for a thousand SRV records. Nil takes all of them.
type selection struct {
	qtype  uint16
	taken  int
	srv    map[seenPort]struct{}
	hosts  map[seenHost]struct{}
	octets int // that the answer has at least
	extra  int // that the addresses of its targets have at least

	owner string // of the last address
	ports []int32
}

type seenPort struct {
	owner string
	port  int
}

type seenHost struct{ owner, host string }

// place is what the services of one host have in common, but for their ports.
type place struct {
	owner, host string
	ip          net.IP // nil if the host is a name
	target      int    // octets of the target of its SRV records, 0 if that is no name
}

func placeOf(owner, host string) place {
	p := place{owner: owner, host: host, ip: net.ParseIP(host)}
	text := owner
	if p.ip == nil {
		text = host
	}
	var room [wire.MaxName + 1]byte
	if name, err := wire.AppendName(room[:0], text); err == nil {
		p.target = len(name)
	}
	return p
}

// Octets of records whose owners are pointers.
const (
	srvLen  = 2 + 10 + 6 // without the target
	aLen    = 2 + 10 + 4
	aaaaLen = 2 + 10 + 16
)

// evenWeights is from how many services on each SRV record has the weight 1, however many they are.
const evenWeights = 128

// comesAgain reports whether ports of a host add nothing, but for the first: it is addresses that are asked for, or the
// SRV records are those of an address before.
func (s *selection) comesAgain(at *place, ports []int32) bool {
	if s.qtype != dns.TypeSRV {
		return true
	}
	if at.ip == nil || len(ports) == 0 {
		return false
	}
	again := at.owner == s.owner && len(ports) == len(s.ports) && &ports[0] == &s.ports[0]
	s.owner, s.ports = at.owner, ports
	return again
}

// enough reports whether the ports that come after one of a host add nothing.
func (s *selection) enough(again bool, port int32) bool {
	return s.ends() || again && (s.qtype != dns.TypeSRV || port != -1 && s.taken >= evenWeights)
}

// ends reports whether no further service is taken: a message has no room for it.
func (s *selection) ends() bool { return s != nil && s.octets > wire.MaxMessage }

// takes reports whether a service is to be in an answer that has those which were taken before.
func (s *selection) takes(at *place, port int) (takes bool) {
	if s == nil {
		return true
	}
	switch s.qtype {
	case dns.TypeSRV:
		takes = s.addsSRV(at, port) || s.taken < evenWeights
	case dns.TypeA, dns.TypeAAAA:
		if takes = s.meets("", at.host); takes && at.ip != nil {
			s.answers(at.ip.To4() != nil)
		}
	default: // the name exists, and that is all
		takes = s.taken == 0
	}
	if takes {
		s.taken++
	}
	return takes
}

// answers counts an address of a family.
func (s *selection) answers(four bool) {
	switch {
	case four && s.qtype == dns.TypeA:
		s.octets += aLen
	case !four && s.qtype == dns.TypeAAAA:
		s.octets += aaaaLen
	}
}

// addsSRV reports whether there is no such SRV record yet, or no such address of its target. Targets that are names are
// not compared: each has a record.
func (s *selection) addsSRV(at *place, port int) bool {
	switch {
	case port == -1 || at.target == 0:
		return false
	case at.ip == nil:
		s.octets += srvLen + at.target
		return true
	}
	if s.srv == nil {
		s.srv = map[seenPort]struct{}{}
	}
	before := len(s.srv)
	s.srv[seenPort{at.owner, port}] = struct{}{}
	adds := len(s.srv) > before
	if adds {
		s.octets += srvLen + at.target
	}
	if s.octets+s.extra <= wire.MaxMessage && s.meets(at.owner, at.host) {
		s.extra += aLen
		adds = true
	}
	return adds
}

// meets reports whether the host of an owner is met for the first time.
func (s *selection) meets(owner, host string) bool {
	if s.hosts == nil {
		s.hosts = map[seenHost]struct{}{}
	}
	before := len(s.hosts)
	s.hosts[seenHost{owner, host}] = struct{}{}
	return len(s.hosts) > before
}
