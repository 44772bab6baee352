package control

import (
	"net/http"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// recursors is the plugins that ask servers of zones.
func (a *api) recursors() (all []status.Recursor) {
	for _, h := range a.handlers() {
		if r, ok := h.(status.Recursor); ok {
			all = append(all, r)
		}
	}
	return all
}

func (a *api) delegation(r *http.Request) (any, error) {
	name, err := nameParameter(r, "a domain name")
	if err != nil {
		return nil, err
	}
	var all []status.Delegation
	for _, p := range a.recursors() {
		if d, ok := p.DelegationStatus(name); ok {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil, &refusal{http.StatusNotFound, "no plugin asks the servers of zones for " + wire.Text(name)}
	}
	return map[string]any{"delegations": all}, nil
}

func (a *api) server(r *http.Request) (any, error) {
	text := r.FormValue("address")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return nil, refusef("address must be an IP address: %q", text)
	}
	var all []status.Server
	for _, p := range a.recursors() {
		all = append(all, p.ServerStatus(addr)...)
	}
	if len(all) == 0 {
		return nil, &refusal{http.StatusNotFound, "nothing is known of a server at " + addr.String()}
	}
	return map[string]any{"servers": all}, nil
}
