package kubernetes

import (
	"errors"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

// errUnsynced is the error of a transfer before it: a secondary would drop what is missing.
var errUnsynced = errors.New("not all of the cluster is known yet")

// Transfer implements transfer.Transferer for the zones of the cluster's own services: the name servers, and for each service its
// addresses, or its alias, and its ports as SRV records. Names that only spell an address are not among them, nor is what can
// be told of the zone itself.
func (k *Kubernetes) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	var z *zone
	if lower, err := wire.LowerName(name); err == nil {
		z, _ = k.compiled().zones.Get(lower)
	}
	if z == nil || z.reverse || z.multicluster {
		return nil, transfer.ErrNotAuthoritative
	}
	if _, synced := k.data(); !synced {
		return nil, errUnsynced
	}
	soa, _ := k.look(name, dns.TypeSOA)
	if len(soa) == 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	out := make(chan []dns.RR)
	go func() {
		defer close(out)
		out <- soa
		if serial != 0 && serial >= soa[0].(*dns.SOA).Serial {
			return
		}
		t := transferred{Kubernetes: k, zone: plugin.Name(name).Normalize(), out: out, met: map[string]bool{}}
		t.run()
		out <- soa
	}()
	return out, nil
}

// TransferSerials implements transfer.Changing.
func (k *Kubernetes) TransferSerials() map[string]uint32 {
	s, synced := k.data()
	if !synced {
		return nil
	}
	all := map[string]uint32{}
	for _, text := range k.Zones {
		if lower, err := wire.LowerName(text); err == nil {
			if z, ok := k.compiled().zones.Get(lower); ok && !z.reverse && !z.multicluster {
				all[wire.Text(lower)] = s.Serial(store.Internal)
			}
		}
	}
	return all
}

// look is the answer that a query gets, with its additional section.
func (k *Kubernetes) look(name string, typ uint16) (answer, extra []dns.RR) {
	r := new(dns.Msg).SetQuestion(name, typ)
	var q wire.Query
	if q.SetMsg(r, wire.Peer{Limit: wire.MaxMessage}) != nil {
		return nil, nil
	}
	q.SetMayBlock(true)
	var w wire.Reply
	w.Reset(nil)
	if result, _ := k.decide(&w, &q); result != hit || w.Rcode() != wire.Success {
		return nil, nil
	}
	m, err := w.Msg(r)
	if err != nil {
		return nil, nil
	}
	return m.Answer, m.Extra
}

// transferred is one transfer under way.
type transferred struct {
	*Kubernetes
	zone string
	out  chan<- []dns.RR
	met  map[string]bool // records that were sent
}

func (t *transferred) run() {
	servers, addresses := t.look(t.zone, dns.TypeNS)
	t.send(append(servers, addresses...))
	s, _ := t.data()
	for _, svc := range s.Services() {
		if exposed(s, svc.Namespace()) {
			t.service(s, svc)
		}
	}
}

// service sends what there is of one service.
func (t *transferred) service(s *store.Store, svc *store.Service) {
	owner := dnsutil.Join(svc.Name(), svc.Namespace(), Svc, t.zone)
	if _, alias := svc.ExternalName(); alias {
		records, _ := t.look(owner, dns.TypeCNAME)
		t.send(records)
		return
	}
	v4, _ := t.look(owner, dns.TypeA)
	v6, _ := t.look(owner, dns.TypeAAAA)
	if len(v4)+len(v6) == 0 {
		return // nobody can reach it
	}
	t.send(append(v4, v6...))
	if svc.Headless() {
		t.endpoints(s, svc, owner)
		return
	}
	for _, p := range svc.Ports() {
		t.port(owner, p, wholeWeight, owner)
		t.namedPort(owner, p, wholeWeight, owner)
	}
}

// wholeWeight is that of SRV records whose target is the service itself.
const wholeWeight = 100

// endpoints sends the endpoints of a headless service, and their named ports.
func (t *transferred) endpoints(s *store.Store, svc *store.Service, owner string) {
	n := name{namespace: []byte(svc.Namespace()), service: []byte(svc.Name())}
	p := t.compiled()
	for e := p.endpoints(s, &n, false); e.next(); {
		end := e.slice.Endpoint(e.i)
		typ := uint16(dns.TypeAAAA)
		if end.Addr.Is4() {
			typ = dns.TypeA
		}
		target := dnsutil.Join(endpointText(&end, p.podNames), owner)
		records, _ := t.look(target, typ)
		t.send(records)
		for _, port := range e.slice.Ports() {
			t.namedPort(owner, port, weight(e.slice.Len()), target)
		}
	}
}

// namedPort sends a port's record at its own name, if it has one.
func (t *transferred) namedPort(service string, p store.Port, weight uint16, target string) {
	if p.Name != "" {
		t.port(dnsutil.Join("_"+p.Name, "_"+strings.ToLower(p.Protocol), service), p, weight, target)
	}
}

// port sends a port's record at owner, if it has a number.
func (t *transferred) port(owner string, p store.Port, weight uint16, target string) {
	if p.Number < 0 {
		return
	}
	t.send([]dns.RR{&dns.SRV{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeSRV, Class: dns.ClassINET, Ttl: t.compiled().ttl},
		Weight: weight, Port: uint16(p.Number), Target: target}})
}

// send sends those records that were not sent before.
func (t *transferred) send(all []dns.RR) {
	var fresh []dns.RR
	for _, rr := range all {
		if text := sameness(rr); !t.met[text] {
			t.met[text] = true
			fresh = append(fresh, rr)
		}
	}
	if len(fresh) > 0 {
		t.out <- fresh
	}
}

// sameness is equal for records of which one is enough: an endpoint in several slices has one SRV record, whatever its weight.
func sameness(rr dns.RR) string {
	if srv, ok := rr.(*dns.SRV); ok {
		plain := *srv
		plain.Weight = 0
		rr = &plain
	}
	return rr.String()
}
