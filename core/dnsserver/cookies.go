package dnsserver

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Cookies is what a server block says about DNS cookies (RFC 7873) of its listeners. A client has one cookie for an address, so the blocks that
// share a listener share the secrets: those of the first block that has any.
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

// judge finds out about the cookie of q, if it has one.
func (s *Server) judge(q *wire.Query) {
	if q.EDNS().Set&wire.HasCookie == 0 || s.cookies == nil {
		return
	}
	option, _ := q.EDNS().Option(wire.OptionCookie)
	q.SetCookie(s.cookies.Judge(option, q.Client.Addr(), uint32(q.Arrival.Unix())))
}

// CookieOf is what the COOKIE option of r, a query of the client at addr, tells of it. Plugins ask it in the message lane.
// s may be nil.
func (s *Server) CookieOf(r *dns.Msg, addr netip.Addr) wire.CookieState {
	state, _ := s.judgeOption(r.IsEdns0(), addr)
	return state
}

// Forgeable reports whether the address of a client that asks over proto may be somebody else's: the listener is one of plain UDP. s may be nil.
func (s *Server) Forgeable(proto wire.Proto) bool {
	return proto == wire.UDP && (s == nil || strings.HasPrefix(s.Addr, transport.DNS+"://"))
}

// judgeOption is judge for a query's OPT record, nil if it has none. For a query with several options the first one counts.
func (s *Server) judgeOption(opt *dns.OPT, addr netip.Addr) (state wire.CookieState, reply []byte) {
	option := cookieIn(opt)
	if s == nil || s.cookies == nil || option == nil || !wire.CookieSized(len(option)) {
		return wire.CookieNone, nil
	}
	state, c := s.cookies.Judge(option, addr, uint32(time.Now().Unix()))
	return state, c[:]
}

// misfit reports whether a query's COOKIE option is of a length that it must not have (RFC 7873 §5.2.2).
func (s *Server) misfit(r *dns.Msg) bool {
	option := cookieIn(r.IsEdns0())
	return s.cookies != nil && option != nil && !wire.CookieSized(len(option))
}

// cookieIn is the data of an OPT record's first COOKIE option, nil if there is none.
func cookieIn(opt *dns.OPT) []byte {
	if opt == nil {
		return nil
	}
	for _, o := range opt.Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok {
			if b, err := hex.DecodeString(c.Cookie); err == nil && b != nil {
				return b
			}
			return []byte{}
		}
	}
	return nil
}

// addCookie puts the cookie for the client at addr into the OPT record of m, a reply to req, if req has one and m has a record.
func (s *Server) addCookie(m, req *dns.Msg, addr netip.Addr) {
	_, c := s.judgeOption(req.IsEdns0(), addr)
	opt := m.IsEdns0()
	if c == nil || opt == nil {
		return
	}
	var options []dns.EDNS0
	for _, o := range opt.Option {
		if o.Option() != dns.EDNS0COOKIE {
			options = append(options, o)
		}
	}
	opt.Option = append(options, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: hex.EncodeToString(c)})
}
