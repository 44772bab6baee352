package dnsserver

import (
	"net/netip"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Cookies is what a server block says about DNS cookies (RFC 7873) of its listeners. A client has one cookie for an
// address, so the blocks that share a listener share the secrets: those of the first block that has any.
type Cookies struct {
	// Ring holds the secrets; nil means those of the process, which nobody else knows.
	Ring *cookie.Ring
	// Off leaves the cookies of clients unanswered, unless another block of the listener requires them.
	Off bool
	// Require says that the block demands cookies. Its plugins do that.
	Require bool
}

// processCookies are the secrets of listeners that are given none. They outlive reloads.
var processCookies = cookie.NewRandomRing(uint32(time.Now().Unix()))

// cookiesOf is the secrets of a listener, nil if it does not answer cookies.
func cookiesOf(group []*Config) *cookie.Ring {
	var ring *cookie.Ring
	off, require := false, false
	for _, cfg := range group {
		c := &cfg.Cookies
		off, require = off || c.Off, require || c.Require
		switch {
		case c.Ring == nil:
		case ring == nil:
			ring = c.Ring
		case !ring.Same(c.Ring):
			log.Warningf("Server blocks set different secrets of cookies for what they share: using the first ones")
		}
	}
	switch {
	case off && !require:
		return nil
	case off:
		log.Warningf("Server blocks require cookies and turn them off for what they share: they are on")
	}
	if ring == nil {
		return processCookies
	}
	return ring
}

// CookieOf is what the COOKIE option of r, a query of the client at addr, tells of it. Plugins ask it in the
// message lane.
func (s *Server) CookieOf(r *dns.Msg, addr netip.Addr) wire.CookieState {
	return s.finish.CookieOf(r, addr)
}

// Forgeable reports whether the address of a client that asks over proto may be somebody else's: the listener is
// one of plain UDP.
func (s *Server) Forgeable(proto wire.Proto) bool {
	return proto == wire.UDP && strings.HasPrefix(s.Addr, transport.DNS+"://")
}
