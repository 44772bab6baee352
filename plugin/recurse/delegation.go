package recurse

import (
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/status"
)

// This file tells whom a query would be sent to, and what is known of servers.

var _ status.Recursor = (*Recurse)(nil)

// DelegationStatus implements status.Recursor.
func (r *Recurse) DelegationStatus(name []byte) (status.Delegation, bool) {
	text, now := string(name), r.now()
	if !slices.ContainsFunc(r.zones, func(zone string) bool { return rrset.Below(text, zone) }) {
		return status.Delegation{}, false
	}
	out := status.Delegation{From: "parent"}
	d := r.conf.Closest(text, now)
	switch {
	case d == nil:
		d, out.From = r.conf.Hints, "hints"
	case d.Fixed && d == r.conf.Hints:
		out.From = "hints"
	case d.Fixed:
		out.From = "stub"
	default:
		out.TTL = int(d.Expires.Left(now))
	}
	out.Zone, out.DS = rrset.Text(d.Zone), d.DS != nil
	for _, h := range d.Hosts {
		out.Servers = append(out.Servers, r.hostStatus(h, now)...)
	}
	return out, true
}

// hostStatus is the servers that a host of a delegation is, or its name alone if no address is known.
func (r *Recurse) hostStatus(h store.Host, now store.Time) (all []status.Server) {
	addrs, name := slices.Clone(h.Addrs), ""
	if h.Name != "" {
		name = rrset.Text(h.Name)
		r.conf.KeptAddrs(h.Name, now, func(a netip.Addr) {
			if !slices.Contains(addrs, a) {
				addrs = append(addrs, a)
			}
		})
	}
	if len(addrs) == 0 {
		return []status.Server{{Host: name, State: "unknown"}}
	}
	for _, a := range addrs {
		to := h.At(a, r.conf.Port)
		s := status.Server{State: "unknown"}
		if v, ok := r.conf.Stores.Servers.Find(to); ok {
			s = serverStatus(v, now)
		}
		s.Host, s.Address = name, to.String()
		all = append(all, s)
	}
	return all
}

// ServerStatus implements status.Recursor.
func (r *Recurse) ServerStatus(a netip.Addr) (all []status.Server) {
	now := r.now()
	r.conf.Stores.Servers.Each(func(v *store.Server) {
		if v.Addr.Addr().Unmap() == a.Unmap() {
			all = append(all, serverStatus(v, now))
		}
	})
	sort.Slice(all, func(i, j int) bool { return all[i].Address < all[j].Address })
	return all
}

// serverStatus is what there is to tell of a server.
func serverStatus(v *store.Server, now store.Time) status.Server {
	k := v.Known(now)
	out := status.Server{
		Address: v.Addr.String(), State: k.State, RTT: float64(k.RTT) / float64(time.Millisecond), Timeouts: k.Timeouts,
		Bare: k.Bare, CaseBlind: k.CaseBlind, TCPOnly: k.TCPOnly,
	}
	for _, zone := range k.Lame {
		out.Lame = append(out.Lame, rrset.Text(zone))
	}
	return out
}
