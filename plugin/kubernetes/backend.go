package kubernetes

import (
	"context"
	"errors"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// A Kubernetes is a plugin.ServiceBackend, too, for plugins that make messages of miekg/dns from services. The
// server's own answers do not come from here, but from the same names and matches.

// Errors of a ServiceBackend. All of them are name errors.
var (
	errInvalidName  = errors.New("invalid query name")
	errNoItems      = errors.New("no items found")
	errNotExposed   = errors.New("namespace is not exposed")
	errNotPublished = errors.New("pods are not published")
)

// keyPrefix is the first element of services' keys.
const keyPrefix = "c"

// IsNameError implements plugin.ServiceBackend.
func (k *Kubernetes) IsNameError(err error) bool {
	return err == errInvalidName || err == errNoItems || err == errNotExposed || err == errNotPublished
}

// Serial implements plugin.ServiceBackend.
func (k *Kubernetes) Serial(state request.Request) uint32 {
	mode := ModifiedInternal
	if z, ok := k.zoneOf(state); ok && z.multicluster {
		mode = ModifiedMultiCluster
	}
	return k.modified(mode)
}

func (k *Kubernetes) modified(mode ModifiedMode) uint32 {
	if k.APIConn == nil {
		return 0
	}
	return uint32(k.APIConn.Modified(mode))
}

// MinTTL implements plugin.ServiceBackend.
func (k *Kubernetes) MinTTL(request.Request) uint32 { return k.compiled().ttl }

// zoneOf returns the zone of state, which says it or has a question below it.
func (k *Kubernetes) zoneOf(state request.Request) (*zone, bool) {
	text := plugin.Name(state.Zone).Normalize()
	if state.Zone == "" {
		if state.Req == nil || len(state.Req.Question) == 0 {
			return nil, false
		}
		text = plugin.Zones(k.Zones).Matches(state.Name())
	}
	name, err := wire.LowerName(text)
	if err != nil || text == "" {
		return nil, false
	}
	return k.compiled().zones.Get(name)
}

// Services implements plugin.ServiceBackend: it returns what there is at the name of state, of whatever type
// but TXT and NS, which have services of their own. exact is without meaning, as all names are exact.
func (k *Kubernetes) Services(ctx context.Context, state request.Request, exact bool, opt plugin.Options) ([]msg.Service, error) {
	return k.services(state)
}

// Records implements plugin.ServiceBackend.
func (k *Kubernetes) Records(ctx context.Context, state request.Request, exact bool) ([]msg.Service, error) {
	return k.services(state)
}

func (k *Kubernetes) services(state request.Request) ([]msg.Service, error) {
	z, ok := k.zoneOf(state)
	if !ok {
		return nil, errInvalidName
	}
	n, _, err := k.parseText(state.Name(), wire.Text(z.name))
	if err != nil {
		return nil, err
	}
	s, _ := k.data()
	c := conversion{plan: k.compiled(), store: s, zone: z, name: &n}
	c.below, c.at = spelledZone(state, z), state.QName()
	m := c.find(s, &n, z.multicluster)
	if n.kind == serversName {
		return c.servers(c.nameservers(s, k.shared.localAddrs(), fromInside, true)), nil
	}
	return c.services(m, state.QType())
}

// spelledZone is the name of the zone as the question spells it.
func spelledZone(state request.Request, z *zone) string {
	qname, zone := state.QName(), wire.Text(z.name)
	if len(qname) >= len(zone) && plugin.Name(zone).Matches(qname) && zone != "." {
		return qname[len(qname)-len(zone):]
	}
	return zone
}

// conversion makes services of what the store has.
type conversion struct {
	*plan
	store *store.Store
	zone  *zone
	name  *name
	below string // the zone's name in text form, as the question spells it
	at    string // the question's name
}

func (c *conversion) service(host string, port int32, owner string) msg.Service {
	return msg.Service{Host: host, Port: int(port), TTL: c.ttl, Key: msg.Path(owner, keyPrefix)}
}

// services returns the services of a match.
func (c *conversion) services(m match, qtype uint16) ([]msg.Service, error) {
	switch m.kind {
	case bareMatch:
		return nil, nil
	case versionMatch:
		if qtype == dns.TypeTXT {
			return []msg.Service{{Text: DNSSchemaVersion, TTL: versionTTL, Key: msg.Path(c.at, keyPrefix)}}, nil
		}
	case podMatch:
		return []msg.Service{c.service(m.addr.String(), -1, c.at)}, nil
	case aliasMatch:
		target, _ := m.svc.ExternalName()
		return []msg.Service{c.service(target, -1, c.at)}, nil
	case clusterMatch:
		return c.cluster(m.svc), nil
	case endsMatch:
		return c.ends()
	}
	return nil, c.denial()
}

// denial says why there is nothing.
func (c *conversion) denial() error {
	switch {
	case c.name.namespace == nil:
		return errNoItems
	case c.name.pods && c.pods == podsDisabled:
		return errNotPublished
	case !c.store.Exposed(c.name.namespace):
		return errNotExposed
	}
	return errNoItems
}

// owner is the name of the service, or with labels that of a part of it.
func (c *conversion) owner(labels ...string) string {
	return dnsutil.Join(append(labels, string(c.name.service), string(c.name.namespace), Svc, c.below)...)
}

// numbers returns the numbers of the ports that are asked for.
func (c *conversion) numbers(ports []store.Port) (all []int32) {
	if len(ports) == 0 && countPorts(nil, c.name, true) > 0 {
		return []int32{-1}
	}
	for i := range ports {
		if c.name.wants(&ports[i]) {
			all = append(all, ports[i].Number)
		}
	}
	return all
}

func (c *conversion) cluster(svc *store.Service) (all []msg.Service) {
	for _, port := range c.numbers(svc.Ports()) {
		for _, a := range svc.ClusterIPs() {
			all = append(all, c.service(a.String(), port, c.owner()))
		}
	}
	return all
}

func (c *conversion) ends() (all []msg.Service, err error) {
	e := c.endpoints(c.store, c.name, c.zone.multicluster)
	for e.next() {
		end := e.slice.Endpoint(e.i)
		owner := []string{endpointText(&end, c.podNames)}
		_, cluster := e.slice.Import()
		if c.zone.multicluster && cluster != "" {
			owner = append(owner, cluster)
		}
		for _, port := range c.numbers(e.slice.Ports()) {
			if c.zone.multicluster && cluster == "" {
				port = -1 // no SRV record leads to it
			}
			all = append(all, c.service(end.Addr.String(), port, c.owner(owner...)))
		}
	}
	if len(all) == 0 && c.name.direction != pin {
		return nil, errNoItems
	}
	return all, nil
}

func endpointText(e *store.Endpoint, podNames bool) string {
	return string(appendLabel(nil, e, podNames)[1:])
}

func (c *conversion) servers(all []nameserver) (sx []msg.Service) {
	for _, s := range all {
		owner := wire.Text(append(s.labels, 0)) + c.below
		if c.below == "." {
			owner = wire.Text(append(s.labels, 0))
		}
		for _, a := range s.addrs {
			sx = append(sx, c.service(a.String(), -1, owner))
		}
	}
	return sx
}

// Reverse implements plugin.ServiceBackend: the services' hosts are the names of the address that the name of state stands for.
func (k *Kubernetes) Reverse(ctx context.Context, state request.Request, exact bool, opt plugin.Options) ([]msg.Service, error) {
	addr, err := netip.ParseAddr(dnsutil.ExtractAddressFromReverse(state.Name()))
	if err != nil {
		return k.services(state)
	}
	s, _ := k.data()
	p := k.compiled()
	var all []msg.Service
	owners := p.owners(s, addr)
	for labels, ok := owners.next(nil); ok; labels, ok = owners.next(nil) {
		host := wire.Text(append(labels, p.primary.name...))
		all = append(all, msg.Service{Host: host, TTL: p.ttl})
	}
	if len(all) == 0 {
		return nil, errNoItems
	}
	return all, nil
}
