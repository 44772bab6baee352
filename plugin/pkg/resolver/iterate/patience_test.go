package iterate

import (
	"testing"
	"time"

	"github.com/miekg/dns"
)

// A near server that is busy for a moment is waited for: the last query that can be sent has a second, whatever the round
// trip time is. The queries before it, and those to servers of which there is another, have no more than that says.
func TestLastQueryIsPatient(t *testing.T) {
	for what, c := range map[string]struct {
		silent []string
		want   string
	}{"one server": {[]string{"10.0.2.2"}, "50ms 100ms 1s"}, "two": {nil, "50ms 50ms 100ms 100ms 200ms 1s"}} {
		w := small(t)
		for _, a := range c.silent { // known not to serve the zone
			w.servers[addr(a)] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) }
		}
		w.conf.Minimise = Off
		for range 40 {
			w.resolve("www.example.org.", "A") // until round trip times are known
			w.resolve("alias.example.org.", "TXT")
			w.conf.Stores.RRsets.Forget("\x07example\x03org\x00", true)
		}
		said := ""
		w.wild = func(a Action) *Event {
			said += a.Wait.String() + " "
			w.now++
			return &Event{Kind: TimedOut}
		}
		w.resolve("busy.example.org.", "A")
		if said != c.want+" " {
			t.Errorf("%s: waits %s, want %s", what, said, c.want)
		}
	}
	if perServer != 3 || finalWait != time.Second {
		t.Error("the figures above are for other constants")
	}
}
