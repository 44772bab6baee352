package reply

import (
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Check finds out about the cookie of q, if it has one (RFC 7873 §5.2).
func (f *Finisher) Check(q *wire.Query) {
	if q.EDNS().Set&wire.HasCookie == 0 || f.Cookies == nil {
		return
	}
	option, _ := q.EDNS().Option(wire.OptionCookie)
	q.SetCookie(f.Cookies.Judge(option, q.Client.Addr(), uint32(q.Arrival.Unix())))
}

// CookieOf is what the COOKIE option of r, a query of the client at addr, tells of it. f may be nil.
func (f *Finisher) CookieOf(r *dns.Msg, addr netip.Addr) wire.CookieState {
	state, _ := f.judge(r.IsEdns0(), addr)
	return state
}

// judge is Check for a query's OPT record, nil if it has none. For a query with several options the first one counts.
func (f *Finisher) judge(opt *dns.OPT, addr netip.Addr) (state wire.CookieState, reply []byte) {
	option := cookieIn(opt)
	if f == nil || f.Cookies == nil || option == nil || !wire.CookieSized(len(option)) {
		return wire.CookieNone, nil
	}
	state, c := f.Cookies.Judge(option, addr, uint32(time.Now().Unix()))
	return state, c[:]
}

// BadCookie reports whether a query's COOKIE option is of a length that it must not have (RFC 7873 §5.2.2).
func (f *Finisher) BadCookie(r *dns.Msg) bool {
	option := cookieIn(r.IsEdns0())
	return f.Cookies != nil && option != nil && !wire.CookieSized(len(option))
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

// addCookie puts the cookie for the client at addr into the OPT record of m, a reply to req, if req has one and m
// has a record.
func (f *Finisher) addCookie(m, req *dns.Msg, addr netip.Addr) {
	_, c := f.judge(req.IsEdns0(), addr)
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
