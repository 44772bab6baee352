// Package external publishes services of a Kubernetes cluster under the addresses at which they are reached from outside, in zones
// of its own.
//
//	query ──apex.go: the zone itself, its name servers──▶ reply
//	   └──Externaler, which is plugin kubernetes──▶ services ──package plugin: A, SRV, …──▶ reply
//
// What there is comes from plugin kubernetes in the same server block; this package knows the names and the records only.
// Any number of goroutines may serve with one External. Start at External.ServeDNS.
package external

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "k8s_external"

// Externaler is a plugin that has services.
type Externaler interface {
	// External returns the services at the name of state in the zone of state, and NOERROR or NXDOMAIN, or SERVFAIL if
	// that cannot be told. headless also asks for endpoints of headless services.
	External(state request.Request, headless bool) ([]msg.Service, int)
	// ExternalAddress returns A and AAAA records of the server itself.
	ExternalAddress(state request.Request, headless bool) []dns.RR
	// ExternalServices returns all services in a zone, and the endpoints of headless ones by the names of those.
	ExternalServices(zone string, headless bool) ([]msg.Service, map[string][]msg.Service)
	// ExternalSerial returns the serial of a zone.
	ExternalSerial(zone string) uint32
}

// reverser is an Externaler that knows services by their addresses, too. The hosts that it returns are names below the
// first zone.
type reverser interface {
	ExternalReverse(ip string) ([]msg.Service, error)
}

// answerer is an Externaler that knows which services an answer has room for: it is External, without the others.
type answerer interface {
	ExternalAnswer(state request.Request, headless bool) ([]msg.Service, int)
}

// spanner is an Externaler that knows whether a prefix has such addresses.
type spanner interface{ ExternalSpan(netip.Prefix) bool }

// publisher is an Externaler that is told that endpoints of headless services are published, and so concern its serial.
type publisher interface{ PublishEndpoints() }

// readier is an Externaler that knows whether all there is has been read once.
type readier interface{ Ready() bool }

// External is the plugin. Its fields are to be set before it serves.
type External struct {
	Next plugin.Handler
	// Zones are fully qualified and in lower case.
	Zones []string
	// Fall says which names that do not exist are passed on.
	Fall fall.F

	apex     string // the label below which the zone's name servers stand
	ttl      uint32 // seconds
	headless bool
	source   Externaler
	upstream *upstream.Upstream

	zonesOnce sync.Once
	zoneNames wire.Suffixes[struct{}] // Zones in wire form
}

const (
	defaultApex = "dns"
	defaultTTL  = 5
	hostmaster  = "hostmaster"
)

// New is an External with the default options.
func New() *External {
	return &External{apex: defaultApex, ttl: defaultTTL, upstream: upstream.New()}
}

// Name is the plugin's name.
func (e *External) Name() string { return pluginName }

// ServeDNS answers for names in the zones, and passes other queries on.
func (e *External) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
	}
	state := request.Request{W: w, Req: r}
	zone := plugin.Zones(e.Zones).Matches(state.Name())
	if zone == "" || e.source == nil {
		return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
	}
	state.Zone = zone
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	switch apex := dnsutil.Join(e.apex, zone); {
	case state.Name() == zone:
		e.answerApex(m, state)
	case dns.IsSubDomain(apex, state.Name()):
		e.answerServers(m, state, apex)
	default:
		if names := e.reverse(state); len(names) > 0 { // the name exists for all types, and has PTR records only
			if state.QType() == dns.TypePTR {
				m.Answer = names
			}
			break
		}
		if e.partial(state.Name()) {
			break
		}
		if !e.answer(ctx, m, state) && e.Fall.Through(state.Name()) {
			return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
		}
	}
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{e.soa(zone)}
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// answer answers from services, and reports false if there are none and the name does not exist.
func (e *External) answer(ctx context.Context, m *dns.Msg, state request.Request) (exists bool) {
	of := e.source.External
	if a, ok := e.source.(answerer); ok {
		of = a.ExternalAnswer
	}
	services, rcode := of(state, e.headless)
	if m.Rcode = rcode; len(services) == 0 {
		return rcode != dns.RcodeNameError
	}
	b := &backend{External: e, name: state.Name(), services: e.own(services)}
	opt := plugin.Options{}
	switch state.QType() {
	case dns.TypeA:
		b.services = addressesFirst(b.services)
		m.Answer, m.Truncated, _ = plugin.A(ctx, b, state.Zone, state, nil, opt)
	case dns.TypeAAAA:
		b.services = addressesFirst(b.services)
		m.Answer, m.Truncated, _ = plugin.AAAA(ctx, b, state.Zone, state, nil, opt)
	case dns.TypeSRV:
		m.Answer, m.Extra, _ = plugin.SRV(ctx, b, state.Zone, state, opt)
	}
	return true
}

// own is services with our TTL.
func (e *External) own(services []msg.Service) []msg.Service {
	all := make([]msg.Service, len(services))
	for i, s := range services {
		s.TTL = e.ttl
		all[i] = s
	}
	return all
}

// addressesFirst leaves out names if there are addresses, and all but one if there are none: an alias stands alone (RFC 2181 §10.1).
func addressesFirst(services []msg.Service) []msg.Service {
	var addresses []msg.Service
	for _, s := range services {
		if net.ParseIP(s.Host) != nil {
			addresses = append(addresses, s)
		}
	}
	if len(addresses) > 0 {
		return addresses
	}
	return services[:1]
}

// reverse is PTR records of an external address, which lead into the first zone.
func (e *External) reverse(state request.Request) (all []dns.RR) {
	ip := dnsutil.ExtractAddressFromReverse(state.Name())
	source, ok := e.source.(reverser)
	if ip == "" || !ok {
		return nil
	}
	services, err := source.ExternalReverse(ip)
	if err != nil {
		return nil
	}
	met := map[string]bool{}
	for _, s := range services {
		if !met[s.Host] {
			met[s.Host] = true
			all = append(all, &dns.PTR{Hdr: e.header(state.QName(), dns.TypePTR), Ptr: dnsutil.Join(s.Host, e.Zones[0])})
		}
	}
	return all
}

// partial reports whether a lower name is a reverse one that is not whole, and has whole ones below it: resolvers that
// minimise names (RFC 9156) walk over them and must not be told that they do not exist (RFC 8020).
func (e *External) partial(name string) bool {
	source, ok := e.source.(spanner)
	if !ok {
		return false
	}
	lower, err := wire.LowerName(name)
	if err != nil {
		return false
	}
	p, ok := wire.ParseReverse(lower)
	return ok && !p.IsSingleIP() && source.ExternalSpan(p)
}

func (e *External) header(owner string, typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: typ, Class: dns.ClassINET, Ttl: e.ttl}
}

// ServeWire passes on queries for other names.
func (e *External) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	e.zonesOnce.Do(func() {
		for _, z := range e.Zones {
			if name, err := wire.LowerName(z); err == nil {
				e.zoneNames.Set(name, struct{}{})
			}
		}
	})
	if _, ok := e.zoneNames.Longest(q.Lower()); ok {
		return wire.Unpack
	}
	return plugin.NextWire(e.Name(), e.Next, ctx, w, q)
}

// WireSelf returns e.
func (e *External) WireSelf() plugin.Handler { return e }
