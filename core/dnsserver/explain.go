package dnsserver

import (
	"encoding/binary"
	"errors"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// explainer is an error of a plugin that tells the client why its query failed, with an extended error (RFC 8914) in the
// error reply. Clients without EDNS are not told.
type explainer interface {
	error
	// ExtendedError is the option's info code and its extra text.
	ExtendedError() (code uint16, text string)
}

// explain puts what err has for the client into the OPT record of m, if both are there.
func explain(m *dns.Msg, err error) {
	var e explainer
	if opt := m.IsEdns0(); opt != nil && errors.As(err, &e) {
		code, text := e.ExtendedError()
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
	}
}

// explainWire is explain for the wire lane; the client gets options only if it sent EDNS.
func explainWire(w *wire.Reply, err error) {
	var e explainer
	if err != nil && errors.As(err, &e) {
		code, text := e.ExtendedError()
		w.AddOption(wire.OptionEDE, append(binary.BigEndian.AppendUint16(nil, code), text...))
	}
}
