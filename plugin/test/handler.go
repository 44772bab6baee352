package test

import (
	"context"

	"github.com/miekg/dns"
)

// Handler is a plugin.Handler, by its shape: package plugin's own tests use this package.
type Handler interface {
	ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error)
	Name() string
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error)

// ServeDNS calls f.
func (f HandlerFunc) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return f(ctx, w, r)
}

// Name is the same for all functions.
func (f HandlerFunc) Name() string { return "handlerfunc" }

// NextHandler returns a Handler that writes nothing and returns rcode and err.
func NextHandler(rcode int, err error) Handler {
	return HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return rcode, err })
}

// ErrorHandler returns a Handler that writes a SERVFAIL reply, and returns its rcode.
func ErrorHandler() Handler {
	return HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetRcode(r, dns.RcodeServerFailure)
		return dns.RcodeServerFailure, w.WriteMsg(m)
	})
}
