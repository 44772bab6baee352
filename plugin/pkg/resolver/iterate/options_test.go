package iterate

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
)

// A server behind a firewall that drops queries with a cookie is asked without when it was silent, and from then on.
func TestSilentToCookies(t *testing.T) {
	w := small(t)
	w.conf.Cookies = true
	dropped := 0
	w.wild = func(a Action) *Event {
		if a.Zone != "\x07example\x03org\x00" || !a.Cookie {
			return nil
		}
		dropped++
		w.now = w.now.After(1)
		return &Event{Kind: TimedOut}
	}
	for i := range 20 {
		w.want(fmt.Sprintf("x%d.example.org.", i), "A", "NXDOMAIN")
	}
	if dropped < 1 || dropped > 2 { // once for each of two servers
		t.Errorf("%d queries with a cookie were dropped", dropped)
	}
}

// One that has replied to a query with a cookie is asked with one also when it was silent: losses are no firewall.
func TestCookiesAfterLosses(t *testing.T) {
	w := small(t)
	w.conf.Cookies = true
	w.servers[addr("10.0.2.2")] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeNotAuth) }
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	lost, plain := 0, 0
	w.wild = func(a Action) *Event {
		if a.Server.Addr.Addr() == addr("10.0.2.2") {
			return nil
		}
		if !a.Cookie {
			plain++
		}
		if lost++; lost%2 == 1 {
			return &Event{Kind: TimedOut}
		}
		return nil
	}
	for i := range 20 {
		w.want(fmt.Sprintf("x%d.example.org.", i), "A", "NXDOMAIN")
	}
	if plain > 0 || lost < 40 {
		t.Errorf("%d queries of %d were sent without a cookie", plain, lost)
	}
}

// One that refuses what has a cookie is asked without where nobody else is left.
func TestRefusedCookies(t *testing.T) {
	w := small(t)
	w.conf.Cookies = true
	refuses, refused := false, 0
	w.wild = func(a Action) *Event {
		refuses = a.Cookie
		return nil
	}
	for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
		whole := w.servers[addr(at)]
		w.servers[addr(at)] = func(q *dns.Msg, tcp bool) *dns.Msg {
			if refuses {
				refused++
				return new(dns.Msg).SetRcode(q, dns.RcodeRefused)
			}
			return whole(q, tcp)
		}
	}
	w.want("www.example.org.", "A", "SERVFAIL; EDE 22")
	before := refused
	for i := range 20 {
		w.want(fmt.Sprintf("x%d.example.org.", i), "A", "NXDOMAIN")
	}
	if refused > before {
		t.Errorf("%d queries with a cookie were refused, %d before", refused-before, before)
	}
}
