package iterate

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
)

// A Result tells which query had no reply that helps last, how it was asked, and how many there were; referrals help.
func TestMissed(t *testing.T) {
	rcode := func(rcode int) server {
		return func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, rcode) }
	}
	short := func(q *dns.Msg, tcp bool) *dns.Msg { // over TCP it is silent
		if tcp {
			return nil
		}
		m := new(dns.Msg).SetReply(q)
		m.Truncated = true
		return m
	}
	for what, tc := range map[string]struct {
		first, second server
		name, want    string
	}{
		"nothing":   {nil, nil, "loop.example.org.", "0"},
		"refused":   {rcode(dns.RcodeRefused), rcode(dns.RcodeRefused), "www.example.org.", "2 udp 10.0.2"},
		"silent":    {silence, silence, "www.example.org.", "6 udp 10.0.2"},
		"cut short": {short, short, "www.example.org.", "4 tcp 10.0.2"},
	} {
		w := small(t)
		w.conf.Minimise = Off
		if tc.first != nil {
			w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = tc.first, tc.second
		}
		res := w.resolve(tc.name, "A")
		got := fmt.Sprint(res.Missed.N)
		if m := res.Missed; m.N > 0 {
			got += fmt.Sprintf(" %s %.6s", map[bool]string{true: "tcp", false: "udp"}[m.TCP], m.Server.Addr)
		}
		if got != tc.want || res.Rcode != rcodeServFail || res.Queries == 0 {
			t.Errorf("%s: %s, want %s; %s", what, got, tc.want, res.text())
		}
	}
}

func silence(*dns.Msg, bool) *dns.Msg { return nil }
