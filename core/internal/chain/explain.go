package chain

import (
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// explain puts what err has for the client into m: RA if it is a resolver's, and what it tells into the OPT record, if
// both are there.
func explain(m *dns.Msg, err error) {
	m.RecursionAvailable = edns.Resolves(err)
	if opt := m.IsEdns0(); opt != nil {
		edns.Explain(opt, err)
	}
}

// explainWire is explain for the wire lane; the client gets options only if it sent EDNS.
func explainWire(w *wire.Reply, err error) {
	if err == nil {
		return
	}
	w.SetFlag(wire.FlagRA, edns.Resolves(err))
	for code, text := range edns.Explanations(err) {
		w.AddEDE(code, text)
	}
}
