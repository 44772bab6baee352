// Package nomad answers for services that are registered in Nomad.
//
//	SERVICE.NAMESPACE.ZONE ──▶ catalogue.go: what is known of the service ──▶ A, AAAA, SRV
//	                                 ▲ │ not asked for yet
//	                 blocking query  │ ▼
//	                              client.go ──HTTP──▶ one of the agents
//
// A service that has been asked for is followed by a blocking query, so that later queries are answered from memory; it is
// forgotten when nobody asks for it any more. Names that do not exist are asked for each time.
//
// Any number of goroutines may serve with one Nomad. Start at Nomad.ServeDNS.
package nomad

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "nomad"

var logger = log.NewWithPlugin(pluginName)

// Nomad is the plugin. Its fields are to be set before it serves.
type Nomad struct {
	Next plugin.Handler
	// Zone is fully qualified and in lower case.
	Zone string

	ttl     uint32 // seconds
	agents  *agents
	catalog *catalogue
	kin     string // see inherit

	met        spaces  // namespaces that are known to exist
	unanswered log.Few // lines about services that no agent told of

	zoneOnce sync.Once
	zoneName []byte // Zone in wire form; nil if it is no name
}

const (
	defaultZone = "service.nomad."
	defaultTTL  = 30
	minimum     = 30 // of SOA records, seconds

	srvPriority, srvWeight = 10, 10
)

// Name is the plugin's name.
func (n *Nomad) Name() string { return pluginName }

// Ready reports whether an agent can be asked; of a single one that is taken for granted. It implements ready.Readiness.
func (n *Nomad) Ready() bool { return n.agents.ready() }

// ServeDNS answers for names in the zone, and passes other queries on.
func (n *Nomad) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(n.Name(), n.Next, ctx, w, r)
	}
	state := request.Request{W: w, Req: r}
	if !dns.IsSubDomain(n.Zone, state.Name()) {
		return plugin.NextOrFailure(n.Name(), n.Next, ctx, w, r)
	}
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	labels := dns.SplitDomainName(strings.TrimSuffix(state.Name(), n.Zone))
	switch {
	case len(labels) == 0 && state.Name() == n.Zone:
		n.answerApex(m, state)
	case len(labels) == 1:
		return plugin.NextOrFailure(n.Name(), n.Next, ctx, w, r)
	case len(labels) > 2:
		m.Rcode = dns.RcodeNameError
	default:
		if err := n.answer(ctx, m, state, labels[0], labels[1]); err != nil {
			return dns.RcodeServerFailure, plugin.Error(pluginName, err)
		}
	}
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{n.soa()}
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// answer answers for a service.
func (n *Nomad) answer(ctx context.Context, m *dns.Msg, state request.Request, service, namespace string) error {
	server := plugin.Label(ctx)
	all, err := n.catalog.get(ctx, key{namespace, service})
	if err != nil && n.unanswered.May() { // the errors plugin need not be there
		logger.Warningf("Service %s in %s: %v", service, namespace, err)
	}
	if err != nil || !slices.ContainsFunc(all, func(i instance) bool { return i.addr.IsValid() }) {
		failed.WithLabelValues(server, n.met.label(namespace)).Inc()
		m.Rcode = dns.RcodeNameError
		return err
	}
	n.met.add(namespace)
	succeeded.WithLabelValues(server, namespace).Inc()
	met := records{map[netip.Addr]bool{}, map[uint16]bool{}}
	for _, i := range all {
		if len(m.Answer) > maxRecords {
			break
		}
		switch typ := state.QType(); {
		case !i.addr.IsValid():
		case typ == dns.TypeSRV:
			if port := uint16(i.Port); met.first(port) {
				m.Answer = append(m.Answer, &dns.SRV{
					Hdr: n.header(state.QName(), dns.TypeSRV), Priority: srvPriority, Weight: srvWeight, Port: port, Target: state.QName(),
				})
			}
			if len(m.Extra) <= maxRecords && met.firstAt(i.addr) {
				m.Extra = append(m.Extra, n.address(state.QName(), i.addr))
			}
		case (typ == dns.TypeA && i.addr.Is4() || typ == dns.TypeAAAA && i.addr.Is6()) && met.firstAt(i.addr):
			m.Answer = append(m.Answer, n.address(state.QName(), i.addr))
		}
	}
	return nil
}

// maxRecords is more than any message has room for: one record of an address takes 16 octets at least.
const maxRecords = wire.MaxMessage / 16

// records are those that a reply has already: of services they differ in nothing else.
type records struct {
	addrs map[netip.Addr]bool
	ports map[uint16]bool
}

// firstAt reports whether an address is met for the first time.
func (r *records) firstAt(a netip.Addr) bool {
	a = a.WithZone("") // which no record has
	met := r.addrs[a]
	r.addrs[a] = true
	return !met
}

// first reports whether a port is met for the first time.
func (r *records) first(port uint16) bool {
	met := r.ports[port]
	r.ports[port] = true
	return !met
}

// answerApex answers for the zone's own name.
func (n *Nomad) answerApex(m *dns.Msg, state request.Request) {
	switch state.QType() {
	case dns.TypeSOA:
		m.Answer = []dns.RR{n.soa()}
	case dns.TypeNS:
		m.Answer = []dns.RR{&dns.NS{Hdr: n.header(n.Zone, dns.TypeNS), Ns: dnsutil.Join("ns1", n.Zone)}}
	}
}

func (n *Nomad) soa() *dns.SOA {
	return &dns.SOA{
		Hdr: n.header(n.Zone, dns.TypeSOA), Ns: dnsutil.Join("ns1", n.Zone), Mbox: dnsutil.Join("hostmaster", n.Zone),
		Serial: n.catalog.serial(), Refresh: 3600, Retry: 600, Expire: 86400, Minttl: minimum,
	}
}

func (n *Nomad) header(owner string, typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: typ, Class: dns.ClassINET, Ttl: n.ttl}
}

func (n *Nomad) address(owner string, a netip.Addr) dns.RR {
	if a.Is4() {
		return &dns.A{Hdr: n.header(owner, dns.TypeA), A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: n.header(owner, dns.TypeAAAA), AAAA: a.AsSlice()}
}

// ServeWire passes on queries for other names.
func (n *Nomad) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	n.zoneOnce.Do(func() { n.zoneName, _ = wire.LowerName(n.Zone) })
	if n.zoneName != nil && wire.Below(q.Lower(), n.zoneName) {
		return wire.Unpack
	}
	return plugin.NextWire(n.Name(), n.Next, ctx, w, q)
}

// WireSelf returns n.
func (n *Nomad) WireSelf() plugin.Handler { return n }
