package proxy

import (
	"bytes"
	"errors"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// cookies is what this side and one upstream know each other by (RFC 7873 §5.1): a random client cookie, and the
// server cookie that the upstream gave for it. An upstream of plain DNS is shown them with the queries whose owners
// say so.
type cookies struct {
	client [clientCookieLen]byte // never changes
	server atomic.Pointer[[]byte]
}

const (
	clientCookieLen = 8
	minServerCookie = 8
	maxServerCookie = 32
)

// ErrBadCookie is the error of an upstream that takes no cookie of its own.
var ErrBadCookie = errors.New("proxy: the upstream refuses its own cookies")

// shown is a query with cookies.
type shown struct {
	plain   []byte // the owner's Query
	query   []byte // what is sent instead
	expects bool   // the upstream gave a cookie before, so the reply must have one
	spurned bool   // a reply without it, or with another one, was ignored
	refused uint8  // how often the upstream answered that a cookie is bad
}

// show makes x's query one with cookies.
func (c *cookies) show(x *Exchange) {
	if x.shown == nil {
		if replies.FindOPT(x.Query) == 0 {
			return
		}
		x.shown = &shown{plain: x.Query}
	}
	s := x.shown
	query, opt := s.plain, replies.FindOPT(s.plain)
	server := c.server.Load()
	var room [clientCookieLen + maxServerCookie]byte
	cookie := append(room[:0], c.client[:]...)
	if s.expects = server != nil; s.expects {
		cookie = append(cookie, *server...)
	}
	b := replies.AppendWithOption(s.query[:0], query, opt, wire.OptionCookie, cookie)
	s.query, x.Query = b, b
}

// known reports whether b, a reply to x with an OPT record at opt, comes from who was shown the cookies (RFC 7873
// §5.3), and keeps the server cookie that it has. Over TCP none is needed, as some servers give them over UDP only; a
// query whose reply lacks one goes there.
func (c *cookies) known(x *Exchange, b []byte, opt int) bool {
	data, ok := replies.Option(b, opt, wire.OptionCookie)
	if !ok {
		return !x.shown.expects || x.Proto == "tcp"
	}
	if len(data) < clientCookieLen || !bytes.Equal(data[:clientCookieLen], c.client[:]) {
		return false
	}
	server := data[clientCookieLen:]
	if len(server) == 0 {
		return true
	}
	if len(server) < minServerCookie || len(server) > maxServerCookie {
		return false
	}
	if old := c.server.Load(); old == nil || !bytes.Equal(*old, server) {
		server = bytes.Clone(server)
		c.server.Store(&server)
	}
	return true
}

// forget lets the next reply come without a server cookie: an upstream may stop giving them.
func (c *cookies) forget() { c.server.Store(nil) }

// refusedCookie reports whether the upstream says that x's cookie is bad, in a reply that has a better one. x is
// then asked again, with that one, over TCP if need be (RFC 7873 §5.3), and ends in an error if that does not help
// either.
func (e *engine) refusedCookie(x *Exchange, facts *replies.Facts) bool {
	if x.shown == nil || facts.Rcode != dns.RcodeBadCookie {
		return false
	}
	x.shown.refused++
	x.proxy.cookiesOf(x).show(x)
	x.flips = nil // that query is gone
	switch x.shown.refused {
	case 1:
		if x.reused = false; x.Proto == "udp" && x.To != nil {
			e.askPeer(x, nil)
		} else if x.Proto == "udp" {
			e.askUDP(x, nil, e.now())
		} else {
			e.askStream(x, 0)
		}
	case 2:
		if x.To != nil { // another Proxy than its maker may have asked over UDP
			e = &x.To.maker.engine
			x.engine = e
		}
		e.askStream(x, 0)
	default:
		e.end(x, ErrBadCookie)
	}
	return true
}
