package iterate

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// Where no query over UDP is answered, one of the servers that have replied of late is asked over TCP, once. A server that
// is unknown is not, nor one that is dead.
func TestOverTCP(t *testing.T) {
	for what, c := range map[string]struct {
		known, dead bool
		tcp         bool // it answers
		asked       int  // over TCP
		want        string
	}{
		"answers over TCP": {true, false, true, 1, "NOERROR; www.example.org. A 192.0.2.1"},
		"silent there too": {true, false, false, 1, "SERVFAIL; EDE 22"},
		"unknown":          {false, false, true, 0, "SERVFAIL; EDE 22"},
		"dead":             {true, true, true, 0, "SERVFAIL; EDE 22"},
	} {
		w := small(t)
		w.conf.Minimise = Off
		good, lost, off := w.servers[addr("10.0.2.1")], false, c.dead
		for _, a := range []string{"10.0.2.1", "10.0.2.2"} {
			w.servers[addr(a)] = func(q *dns.Msg, tcp bool) *dns.Msg {
				if lost && (!tcp || !c.tcp || off) {
					return nil
				}
				return good(q, tcp)
			}
		}
		for range 40 { // until both are known
			if c.known {
				w.resolve("alias.example.org.", "TXT")
				w.conf.Stores.RRsets.Forget("\x07example\x03org\x00", true)
			}
		}
		lost = true
		if c.dead {
			for _, name := range []string{"a.", "b.", "c."} {
				w.resolve(name+"example.org.", "A")
			}
			off = false
		}
		w.asked = nil
		if got := w.resolve("www.example.org.", "A").text(); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
		udp, tcp := 0, 0
		for _, a := range w.asked {
			if a.tcp {
				tcp++
			} else {
				udp++
			}
		}
		if tcp != c.asked || udp == 0 {
			t.Errorf("%s: %d queries over UDP and %d over TCP, want %d", what, udp, tcp, c.asked)
		}
	}
}

// A server that counts as dead for what others have asked may only be away for a moment: for five seconds it is asked over
// TCP, too.
func TestOverTCPWhileItPauses(t *testing.T) {
	for _, c := range []struct {
		since store.Time
		asked int // over TCP
		want  string
	}{{2 * store.Second, 1, "NOERROR; www.example.org. A 192.0.2.1"}, {6 * store.Second, 0, "SERVFAIL; EDE 22"}} {
		w := small(t)
		w.conf.Minimise = Off
		good := w.servers[addr("10.0.2.1")]
		for range 40 { // until both are known
			w.resolve("alias.example.org.", "TXT")
			w.conf.Stores.RRsets.Forget("\x07example\x03org\x00", true)
		}
		for _, a := range []string{"10.0.2.1", "10.0.2.2"} {
			w.servers[addr(a)] = func(q *dns.Msg, tcp bool) *dns.Msg {
				if !tcp {
					return nil
				}
				return good(q, tcp)
			}
		}
		w.conf.Stores.Servers.Each(func(s *store.Server) {
			for i := range store.Time(8) { // of what others have asked
				s.Silent(w.now+i*store.Second/4, 0)
			}
			s.Asked(w.now + c.since)
		})
		w.now += c.since
		w.asked = nil
		if got := w.resolve("www.example.org.", "A").text(); got != c.want {
			t.Errorf("after %v: %s, want %s", time.Duration(c.since), got, c.want)
		}
		udp, tcp := 0, 0
		for _, a := range w.asked {
			switch {
			case a.tcp:
				tcp++
			case a.at == addr("10.0.2.1") || a.at == addr("10.0.2.2"):
				udp++
			}
		}
		if tcp != c.asked || udp == 0 || udp > deadProbes {
			t.Errorf("after %v: %d queries over UDP, %d over TCP: %v", time.Duration(c.since), udp, tcp, w.asked)
		}
	}
}
