package etcd

import (
	"context"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/transfer"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Transfer implements transfer.Transferer: the records of each service at its own name. What names above it get from the services
// below them is not among them.
func (e *Etcd) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	if !slices.Contains(e.Zones, zone) {
		return nil, transfer.ErrNotAuthoritative
	}
	ctx := context.Background()
	state := request.Request{Zone: zone, Req: new(dns.Msg).SetQuestion(zone, dns.TypeTXT)}
	kvs, at, err := e.snapshot(ctx, msg.Path(zone, e.PathPrefix))
	if err != nil {
		return nil, err
	}
	soa, err := plugin.SOA(ctx, e, zone, state, plugin.Options{})
	if err != nil {
		return nil, err
	}
	soa[0].(*dns.SOA).Serial = at
	out := make(chan []dns.RR)
	go func() {
		defer close(out)
		out <- soa
		if serial != 0 && serial >= at {
			return
		}
		r := e.reader(dns.TypeTXT)
		r.read(kvs, len(kvs))
		services := r.allInTime(ctx)
		if servers, addresses, err := plugin.NS(ctx, e.still(kvs), zone, state, plugin.Options{}); err == nil && len(servers) > 0 {
			out <- append(servers, addresses...)
		}
		met := owners{}
		for i := range services {
			if records := e.recordsOf(&services[i], zone); len(records) > 0 && met.take(records, zone) {
				out <- records
			}
		}
		out <- soa
	}()
	return out, nil
}

// still is e as it was when some keys, which are in order, were read: it asks for nothing, so nothing can be missing.
func (e *Etcd) still(kvs []*mvccpb.KeyValue) *Etcd {
	v := &view{prefix: msg.Path("", e.PathPrefix), ready: true, kvs: map[string]*mvccpb.KeyValue{}}
	for _, kv := range kvs {
		v.keys = append(v.keys, string(kv.Key))
		v.kvs[string(kv.Key)] = kv
	}
	return &Etcd{PathPrefix: e.PathPrefix, MinLeaseTTL: e.MinLeaseTTL, MaxLeaseTTL: e.MaxLeaseTTL, Client: e.client(), view: v}
}

// snapshot is the keys below path, and a serial that is not newer than they are: a secondary that has that serial would not ask
// for what it lacks. Where changes keep coming it may be older.
func (e *Etcd) snapshot(ctx context.Context, path string) (kvs []*mvccpb.KeyValue, serial uint32, err error) {
	const tries = 3 // the first one learns of the revision
	for range tries {
		before := e.lastRev.get()
		kvs = nil
		err = e.get(ctx, path, allBelow, func(page []*mvccpb.KeyValue, _ int) { kvs = append(kvs, page...) })
		if err != nil && !e.IsNameError(err) {
			return nil, 0, err
		}
		if serial = uint32(before); before == e.lastRev.get() {
			break
		}
	}
	return kvs, serial, nil
}

// TransferSerials implements transfer.Changing. Without a copy in memory changes do not show.
func (e *Etcd) TransferSerials() map[string]uint32 {
	if e.view == nil || !e.view.settled() {
		return nil
	}
	all := map[string]uint32{}
	for _, zone := range e.Zones {
		all[zone] = uint32(e.lastRev.get())
	}
	return all
}

// recordsOf is the records of a service at its own name. Name servers and the zone's own addresses stand in it otherwise.
func (e *Etcd) recordsOf(s *msg.Service, zone string) (all []dns.RR) {
	owner := msg.Domain(s.Key)
	if _, err := wire.AppendName(nil, owner); err != nil || dns.IsSubDomain(dnsutil.Join("ns.dns", zone), owner) {
		return nil
	}
	typ, ip := s.HostType()
	switch {
	case typ == dns.TypeA:
		all = append(all, s.NewA(owner, ip))
	case typ == dns.TypeAAAA:
		all = append(all, s.NewAAAA(owner, ip))
	case s.Host != "" && dnsutil.IsReverse(owner) > 0: // a secondary is asked for the names of addresses, too
		all = append(all, s.NewPTR(owner, s.Host))
	case typ == dns.TypeCNAME && s.Port == 0 && !s.Mail && s.Text == "":
		return []dns.RR{s.NewCNAME(owner, dns.Fqdn(s.Host))}
	}
	target := owner
	if typ == dns.TypeCNAME {
		target = dns.Fqdn(s.Host)
	}
	if s.Port > 0 {
		srv := s.NewSRV(owner, 100)
		srv.Target = target
		all = append(all, srv)
	}
	if s.Mail {
		mx := s.NewMX(owner)
		mx.Mx = target
		all = append(all, mx)
	}
	if typ == dns.TypeTXT { // beside an address, a text is no record
		all = append(all, s.NewTXT(owner))
	}
	return all
}

// owners are those whose records were sent, in lower case, and whether that is an alias. Two keys may have one name, in other
// letters or with a slash at the end.
type owners map[string]bool

// take reports whether records of one owner may be sent: beside an alias there are no others, or secondaries refuse the zone
// (RFC 2181 §10.1). The zone's own name has others.
func (o owners) take(records []dns.RR, zone string) bool {
	owner, alias := strings.ToLower(records[0].Header().Name), records[0].Header().Rrtype == dns.TypeCNAME
	has, met := o[owner]
	if has || alias && (met || owner == zone) {
		return false
	}
	o[owner] = alias
	return true
}
