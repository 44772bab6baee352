package plugin

import (
	"context"
	"net"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// SRV returns the SRV records (RFC 2782) of the name of state, and the addresses of their targets as extra. Weights are
// set in relation to the sum of those of the same priority, so that they add up to about 100. A service without a port
// (-1) has no record.
//
// The target of a service whose host is an address is made of the service's key; of these, equal records count once. A
// service whose target is no name, as with a label of 64 octets, has no record.
func SRV(ctx context.Context, b ServiceBackend, zone string, state request.Request, opt Options) (records, extra []dns.RR, err error) {
	services, err := b.Services(ctx, state, false, opt)
	if err != nil {
		return nil, nil, err
	}
	type target struct {
		name string
		port uint16
	}
	var sums tally[int] // of weights, by priority
	for i := range services {
		sums.add(services[i].Priority, weightOf(&services[i]))
	}
	var seen tally[target]
	octets := 0
	t := targets{ctx: ctx, backend: b, zone: zone, opt: opt, state: state}
	for i := range services {
		s := services[i]
		if s.Port == -1 {
			continue
		}
		weight := uint16(max(1, 100*weightOf(&s)/sums.of(s.Priority)))
		switch what, ip := s.HostType(); what {
		case dns.TypeCNAME:
			if s.Host == "" {
				continue
			}
			rr := s.NewSRV(state.QName(), weight)
			if !isName(rr.Target) {
				continue
			}
			records = append(records, rr)
			octets += srvOctets + nameLen(rr.Target)
			t.want(rr.Target, nil, nil)
		case dns.TypeA, dns.TypeAAAA:
			s.Host = msg.Domain(s.Key)
			rr := s.NewSRV(state.QName(), weight)
			if !isName(rr.Target) {
				continue
			}
			if seen.first(target{rr.Target, rr.Port}) {
				records = append(records, rr)
				octets += srvOctets + nameLen(rr.Target)
			}
			t.want(rr.Target, &services[i], ip)
		}
	}
	return records, t.gather(wire.MaxMessage - octets), nil
}

// isName reports whether text is a fully qualified name that messages can have.
func isName(text string) bool { return nameLen(text) > 0 }

// nameLen is the octets of a fully qualified name, 0 of a text that is none that messages can have.
func nameLen(text string) int {
	var buf [wire.MaxName + 1]byte
	name, err := wire.AppendName(buf[:0], text)
	if err != nil || !dns.IsFqdn(text) {
		return 0
	}
	return len(name)
}

// Octets that records take in a message at least, with names that are as short as they can be.
const (
	ownerOctets = 12                  // without data
	srvOctets   = ownerOctets + 6     // without the target, which is written in full (RFC 2782)
	mxOctets    = ownerOctets + 2 + 1 // whose target may be the root
)

// maxWeight is more than a record's weight can be (RFC 2782). A hundred times it is an int, and so are sums.
const maxWeight = 1 << 20

// weightOf is the weight of a service as it counts; 0 and less mean 100.
func weightOf(s *msg.Service) int {
	if s.Weight <= 0 {
		return 100
	}
	return min(s.Weight, maxWeight)
}

// MX returns the MX records of the name of state: one for each service that is a mail exchange. Targets are treated
// as by SRV.
func MX(ctx context.Context, b ServiceBackend, zone string, state request.Request, opt Options) (records, extra []dns.RR, err error) {
	services, err := b.Services(ctx, state, false, opt)
	if err != nil {
		return nil, nil, err
	}
	type target struct {
		name       string
		preference uint16
	}
	var seen tally[target]
	t := targets{ctx: ctx, backend: b, zone: zone, opt: opt, state: state}
	for i := range services {
		s := services[i]
		if !s.Mail {
			continue
		}
		switch what, ip := s.HostType(); what {
		case dns.TypeCNAME:
			if s.Host == "" {
				continue
			}
			rr := s.NewMX(state.QName())
			if !isName(rr.Mx) {
				continue
			}
			records = append(records, rr)
			t.want(rr.Mx, nil, nil)
		case dns.TypeA, dns.TypeAAAA:
			s.Host = msg.Domain(s.Key)
			rr := s.NewMX(state.QName())
			if !isName(rr.Mx) {
				continue
			}
			if seen.first(target{rr.Mx, rr.Preference}) {
				records = append(records, rr)
			}
			t.want(rr.Mx, &services[i], ip)
		}
	}
	return records, t.gather(wire.MaxMessage - len(records)*mxOctets), nil
}

// targets gathers the addresses of the targets of an answer, for its additional section.
type targets struct {
	ctx     context.Context
	backend ServiceBackend
	zone    string
	opt     Options
	state   request.Request

	wanted []wanted
	extra  []dns.RR
	names  tally[string]
	addrs  tally[targetAddr]
	effort effort
}

type targetAddr struct{ name, ip string }

// wanted is a target whose addresses are to be gathered.
type wanted struct {
	name    string
	service *msg.Service // that has the address, nil if the target is to be looked up
	ip      net.IP
}

func (t *targets) want(name string, service *msg.Service, ip net.IP) {
	t.wanted = append(t.wanted, wanted{name, service, ip})
}

// gather returns the addresses of what is wanted, as long as they may fit into room octets: no target is looked up
// whose addresses no message has room for.
func (t *targets) gather(room int) []dns.RR {
	for _, w := range t.wanted {
		if room <= 0 {
			break
		}
		before := len(t.extra)
		if w.service != nil {
			t.addAddress(w.service, w.name, w.ip)
		} else {
			t.addName(w.name)
		}
		room -= (len(t.extra) - before) * (ownerOctets + 2)
	}
	return t.extra
}

// addAddress adds the address record of a target whose service has an address of its own.
func (t *targets) addAddress(s *msg.Service, owner string, ip net.IP) {
	if !t.addrs.first(targetAddr{owner, string(ip)}) {
		return
	}
	if len(ip) == net.IPv4len {
		t.extra = append(t.extra, s.NewA(owner, ip))
		return
	}
	t.extra = append(t.extra, s.NewAAAA(owner, ip))
}

// addName adds the A and AAAA records of a target, with the aliases that lead to them. A target that cannot be
// resolved adds nothing.
func (t *targets) addName(target string) {
	if !t.names.first(target) {
		return
	}
	before := len(t.extra)
	t.extra = append(t.extra, t.resolve(target, dns.TypeA)...)
	aliased := len(t.extra) > before // then the aliases, if any, are there
	for _, rr := range t.resolve(target, dns.TypeAAAA) {
		if rr.Header().Rrtype != dns.TypeCNAME || !aliased {
			t.extra = append(t.extra, rr)
		}
	}
}

func (t *targets) resolve(target string, typ uint16) []dns.RR {
	if dns.IsSubDomain(t.zone, target) {
		l := lookup{ctx: t.ctx, backend: t.backend, zone: t.zone, opt: t.opt, typ: typ, effort: t.effort}
		found, err := l.run(asking(t.state, target, typ), nil) // no address is no error of the answer
		t.effort = l.effort
		if err != nil && t.backend.IsNameError(err) {
			found = t.effort.elsewhere(t.ctx, t.backend, t.state, target, typ).Answer
		}
		return found
	}
	m, err := t.backend.Lookup(t.ctx, t.state, target, typ)
	if err != nil || m == nil {
		return nil
	}
	return m.Answer
}
