package reply

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

var ring = cookie.NewRing(cookie.Keys{{1}})

// cookieOption is an option with these octets, in hexadecimal.
func cookieOption(octets string) dns.EDNS0 {
	return &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: octets}
}

// cookiesIn are the COOKIE options of m.
func cookiesIn(m *dns.Msg) (all []string) {
	if m.IsEdns0() == nil {
		return nil
	}
	for _, o := range m.IsEdns0().Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok {
			all = append(all, c.Cookie)
		}
	}
	return all
}

const clientCookie = "0123456789abcdef"

// validCookie is the cookie that the client of clientsOf has got.
func validCookie() string {
	option, _ := hex.DecodeString(clientCookie)
	_, c := ring.Judge(option, clientAddr.Addr(), uint32(time.Now().Unix()))
	return hex.EncodeToString(c[:])
}

// Both lanes find out the same about a query.
func TestCookieOf(t *testing.T) {
	good := validCookie()
	forged := good[:47] + map[bool]string{true: "1", false: "0"}[good[47] == '0']
	for _, tc := range []struct {
		name   string
		r      *dns.Msg
		client string
		want   wire.CookieState
	}{
		{"without EDNS", question(0, false), "192.0.2.1", wire.CookieNone},
		{"without a cookie", question(1232, false), "192.0.2.1", wire.CookieNone},
		{"client cookie", question(1232, false, cookieOption(clientCookie)), "192.0.2.1", wire.CookieClient},
		{"valid", question(1232, false, cookieOption(good)), "192.0.2.1", wire.CookieValid},
		{"another client's", question(1232, false, cookieOption(good)), "192.0.2.2", wire.CookieInvalid},
		{"forged", question(1232, false, cookieOption(forged)), "192.0.2.1", wire.CookieInvalid},
		{"behind another option", question(1232, false, &dns.EDNS0_PADDING{}, cookieOption(good)), "192.0.2.1", wire.CookieValid},
		{"the first of two", question(1232, false, cookieOption(good), cookieOption(clientCookie)), "192.0.2.1", wire.CookieValid},
	} {
		client := netip.MustParseAddr(tc.client)
		for name, f := range map[string]*Finisher{"on": {Cookies: ring}, "off": {}} {
			want := tc.want
			if name == "off" {
				want = wire.CookieNone
			}
			if got := f.CookieOf(tc.r, client); got != want {
				t.Errorf("%s, %s: message is %s, want %s", tc.name, name, got, want)
			}
			q := new(wire.Query)
			if !q.Parse(packed(t, tc.r)) {
				t.Fatal("not eligible")
			}
			q.Client, q.Arrival = netip.AddrPortFrom(client, 4711), time.Now()
			if f.Check(q); q.Cookie() != want {
				t.Errorf("%s, %s: query is %s, want %s", tc.name, name, q.Cookie(), want)
			}
		}
		if got := (*Finisher)(nil).CookieOf(tc.r, client); got != wire.CookieNone {
			t.Errorf("%s: %s without a Finisher", tc.name, got)
		}
	}
}

// A COOKIE option of a length that it must not have is told of, where cookies are answered (RFC 7873 §5.2.2).
func TestBadCookie(t *testing.T) {
	for n := range 50 {
		r := question(1232, false, cookieOption(strings.Repeat("5a", n)))
		good := n == 8 || n >= 16 && n <= 40
		if got := (&Finisher{Cookies: ring}).BadCookie(r); got == good {
			t.Errorf("%d octets: %t", n, got)
		}
		if new(Finisher).BadCookie(r) {
			t.Errorf("%d octets, cookies are off", n)
		}
		if state := (&Finisher{Cookies: ring}).CookieOf(r, clientAddr.Addr()); (state == wire.CookieNone) == good {
			t.Errorf("%d octets: %s", n, state)
		}
	}
	f := &Finisher{Cookies: ring}
	if !f.BadCookie(question(1232, false, cookieOption("no hex"))) || f.BadCookie(question(1232, false)) || f.BadCookie(question(0, false)) {
		t.Error("not by the option's length")
	}
}

// Who shows a cookie gets one, whatever plugins put into the reply, and it has its place in a reply that is cut.
func TestCookieInReplies(t *testing.T) {
	f := &Finisher{Cookies: ring}
	good := validCookie()
	for _, tc := range []struct {
		name  string
		asked []dns.EDNS0
		want  bool
	}{
		{"none", nil, false},
		{"client cookie", []dns.EDNS0{cookieOption(clientCookie)}, true},
		{"valid", []dns.EDNS0{cookieOption(good)}, true},
		{"invalid", []dns.EDNS0{cookieOption(clientCookie + strings.Repeat("00", 16))}, true},
	} {
		for _, n := range []int{1, 100} {
			for _, transport := range []string{"udp", "tcp"} {
				r := question(512, false, tc.asked...)
				m := answers(r, n)
				if tc.want { // there is none beside the server's
					m.SetEdns0(1232, false)
					m.IsEdns0().Option = []dns.EDNS0{cookieOption("ffffffffffffffff")}
				}
				eachWay(t, f, transport, m, r, func(t *testing.T, way string, got *dns.Msg, length int) {
					cookies := cookiesIn(got)
					if (len(cookies) == 1) != tc.want || len(cookies) > 1 || len(got.Answer) == 0 {
						t.Errorf("%s, %s, %s: cookies %v, %d answers", tc.name, transport, way, cookies, len(got.Answer))
					}
					if tc.want && tc.name != "invalid" && (len(cookies) != 1 || !strings.HasPrefix(cookies[0], clientCookie+"01000000")) {
						t.Errorf("%s, %s, %s: cookies %v", tc.name, transport, way, cookies)
					}
					if transport == "udp" && (length > 512 || got.Truncated != (n == 100)) {
						t.Errorf("%s, %s: %d octets, TC %t", tc.name, way, length, got.Truncated)
					}
				})
			}
		}
	}
}

// A valid cookie stays the same, so that clients need not learn another one.
func TestCookieStays(t *testing.T) {
	good := validCookie()
	r := question(1232, false, cookieOption(good))
	eachWay(t, &Finisher{Cookies: ring}, "udp", answers(r, 1), r, func(t *testing.T, way string, got *dns.Msg, _ int) {
		if c := cookiesIn(got); len(c) != 1 || c[0] != good {
			t.Errorf("%s: got %v, want %s", way, c, good)
		}
	})
}

// Questions of plugins have no client, and get no cookie from FitMsg.
func TestNoCookieWithoutClient(t *testing.T) {
	r := question(1232, false, cookieOption(clientCookie))
	w, _ := writerFor(nil, "udp")
	for addr, want := range map[netip.Addr]int{{}: 0, clientAddr.Addr(): 1} {
		m := answers(r, 1)
		(&Finisher{Cookies: ring}).FitMsg(m, r, w, addr)
		if got := cookiesIn(m); len(got) != want {
			t.Errorf("%v: %v", addr, got)
		}
	}
}
