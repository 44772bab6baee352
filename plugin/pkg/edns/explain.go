package edns

import (
	"errors"

	"github.com/miekg/dns"
)

// Explainer is an error of a plugin that tells the client why its query failed, by an extended error (RFC 8914) in the
// error reply that the server makes of it. Clients without EDNS are not told.
type Explainer interface {
	error
	// ExtendedError is the option's info code and its extra text.
	ExtendedError() (code uint16, text string)
}

// Explanation is the extended error that err, or what it wraps, has for the client, for plugins that write the error
// reply themselves. ok is false if there is none.
func Explanation(err error) (code uint16, text string, ok bool) {
	var e Explainer
	if !errors.As(err, &e) {
		return 0, "", false
	}
	code, text = e.ExtendedError()
	return code, text, true
}

// Explain adds to opt all extended errors that err has for the client: its own, and those of the Explainers that it
// wraps.
func Explain(opt *dns.OPT, err error) {
	for e := Explainer(nil); errors.As(err, &e); err = errors.Unwrap(e) {
		code, text := e.ExtendedError()
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
	}
}

// Resolver is an error of a plugin that resolves names for its clients. The error reply that is made of it says so, by
// RA (RFC 1035 §4.1.1).
type Resolver interface {
	error
	// Resolves does nothing.
	Resolves()
}

// Resolves reports whether err, or what it wraps, is a Resolver's.
func Resolves(err error) bool {
	var r Resolver
	return errors.As(err, &r)
}

// ErrorReply is the error reply to r that the server would make of rcode and err, for plugins that write or tell it
// themselves. The server fits its OPT record to the client's.
func ErrorReply(r *dns.Msg, rcode int, err error) *dns.Msg {
	m := new(dns.Msg).SetRcode(r, rcode)
	m.RecursionAvailable = Resolves(err)
	if opt := r.IsEdns0(); opt != nil && errors.As(err, new(Explainer)) {
		m.SetEdns0(opt.UDPSize(), opt.Do())
		Explain(m.IsEdns0(), err)
	}
	return m
}
