package kubernetes

import (
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

// Transfer implements transfer.Transferer for the zones of the cluster's own services: the names that the cluster has, with the
// records that queries for them get. Names that only spell an address are not among them.
func (k *Kubernetes) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	var z *zone
	if lower, err := wire.LowerName(name); err == nil {
		z, _ = k.compiled().zones.Get(lower)
	}
	if z == nil || z.reverse || z.multicluster {
		return nil, transfer.ErrNotAuthoritative
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
	version, _ := t.look(dnsutil.Join("dns-version", t.zone), dns.TypeTXT)
	t.send(version)
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
	for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV} {
		records, _ := t.look(owner, typ)
		t.send(records)
	}
	for _, port := range svc.Ports() {
		if port.Name != "" {
			records, _ := t.look(dnsutil.Join("_"+port.Name, "_"+strings.ToLower(port.Protocol), owner), dns.TypeSRV)
			t.send(records)
		}
	}
	if !svc.Headless() {
		return
	}
	n := name{namespace: []byte(svc.Namespace()), service: []byte(svc.Name())}
	p := t.compiled()
	for e := p.endpoints(s, &n, false); e.next(); {
		end := e.slice.Endpoint(e.i)
		typ := uint16(dns.TypeAAAA)
		if end.Addr.Is4() {
			typ = dns.TypeA
		}
		records, _ := t.look(dnsutil.Join(endpointText(&end, p.podNames), owner), typ)
		t.send(records)
	}
}

// send sends those records that were not sent before.
func (t *transferred) send(all []dns.RR) {
	var fresh []dns.RR
	for _, rr := range all {
		if text := rr.String(); !t.met[text] {
			t.met[text] = true
			fresh = append(fresh, rr)
		}
	}
	if len(fresh) > 0 {
		t.out <- fresh
	}
}
