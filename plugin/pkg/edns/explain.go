package edns

import (
	"errors"
	"iter"

	"github.com/miekg/dns"
)

// Explainer is an error of a plugin that tells the client why its query failed, by an extended error (RFC 8914) in the
// error reply that the server makes of it. Clients without EDNS are not told.
type Explainer interface {
	error
	// ExtendedError is the option's info code and its extra text.
	ExtendedError() (code uint16, text string)
}

// Explanations are the extended errors that err has for the client, info codes and extra texts: its own, and those of
// the Explainers that it wraps. Who writes an error reply himself tells all of them.
func Explanations(err error) iter.Seq2[uint16, string] {
	return func(yield func(uint16, string) bool) {
		for e := Explainer(nil); errors.As(err, &e) && yield(e.ExtendedError()); {
			err = errors.Unwrap(e)
		}
	}
}

// Explain adds to opt what err has for the client.
func Explain(opt *dns.OPT, err error) {
	for code, text := range Explanations(err) {
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
