package forward

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// explained is an error that tells the client why, with an extended error (RFC 8914), once the server makes a reply of it. Its text
// in the log is the error's own.
type explained struct {
	error
	code uint16
	text string
}

// Unwrap is the error itself.
func (e *explained) Unwrap() error { return e.error }

// ExtendedError is the info code and the extra text of the client's EDE option.
func (e *explained) ExtendedError() (code uint16, text string) { return e.code, e.text }

// explain is the error of a, which fails, as it goes to the server: with what is to be told to the client if the directive says that
// anything is, and what is to be logged if *errors* is told so. c is the course that ended so.
func (f *Forward) explain(c *course, upstreams []*proxy.Proxy, a action) error {
	err := f.toClient(c, upstreams, a)
	if !f.details || a.rcode != wire.ServFail {
		return err
	}
	if c.failed == 0 {
		return plugin.WithAttempt(err, "", "", 0)
	}
	asked := upstreams[c.asked]
	return plugin.WithAttempt(err, asked.Addr(), transportOf(asked, c.overTCP), c.failed)
}

// transportOf is what an upstream is asked over: its protocol, or for plain DNS udp or tcp.
func transportOf(up *proxy.Proxy, overTCP bool) string {
	switch over := up.Protocol(); {
	case over != transport.DNS:
		return over
	case overTCP:
		return "tcp"
	}
	return "udp"
}

// toClient is the error of a with what is to be told to the client.
func (f *Forward) toClient(c *course, upstreams []*proxy.Proxy, a action) error {
	switch {
	case !f.ede || a.rcode != wire.ServFail:
		return a.err
	case len(upstreams) == 0:
		return &explained{a.err, dns.ExtendedErrorCodeNoReachableAuthority, "no upstream"}
	case c.failed == 0:
		return &explained{a.err, dns.ExtendedErrorCodeNoReachableAuthority, upstreams[c.order[0]].Addr() + ": down" + others(len(upstreams)-1)}
	}
	code, why := because(a.err)
	return &explained{a.err, code, upstreams[c.asked].Addr() + ": " + why}
}

func others(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}

// refusal is the error of a query that there is no room for.
func (f *Forward) refusal() error {
	if !f.ede || f.ErrLimitExceeded == nil {
		return f.ErrLimitExceeded
	}
	return &explained{f.ErrLimitExceeded, dns.ExtendedErrorCodeOther, f.ErrLimitExceeded.Error()}
}

// because is what an attempt's error says to clients: who was silent could not be reached, and all else is
// an error on the way. Ports and addresses of this side are nobody's business.
func because(err error) (code uint16, why string) {
	var errno syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return dns.ExtendedErrorCodeNoReachableAuthority, "no reply in time"
	case errors.As(err, &errno):
		return dns.ExtendedErrorCodeNetworkError, errno.Error()
	case errors.Is(err, proxy.ErrMismatch):
		return dns.ExtendedErrorCodeNetworkError, "the reply does not match the query"
	case errors.Is(err, proxy.ErrBusy), errors.Is(err, proxy.ErrGaveWay):
		return dns.ExtendedErrorCodeNetworkError, "too many queries wait for it"
	}
	return dns.ExtendedErrorCodeNetworkError, "network error"
}
