package iterate

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// Where no query over UDP is answered, one of the servers is asked over TCP, once.
func TestOverTCP(t *testing.T) {
	for what, c := range map[string]struct {
		known, dead bool
		tcp         bool // it answers
		asked       int  // over TCP
		want        string
	}{
		"answers over TCP": {true, false, true, 1, "NOERROR; www.example.org. A 192.0.2.1"},
		"silent there too": {true, false, false, 1, "SERVFAIL; EDE 22"},
		"unknown":          {false, false, true, 1, "NOERROR; www.example.org. A 192.0.2.1"},
		"dead":             {true, true, true, 1, "NOERROR; www.example.org. A 192.0.2.1"},
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
// TCP, too. After that it is once in a while.
func TestOverTCPWhileItPauses(t *testing.T) {
	for _, c := range []struct {
		since store.Time
		tried bool // over TCP just now
		asked int  // over TCP
		want  string
	}{
		{2 * store.Second, true, 1, "NOERROR; www.example.org. A 192.0.2.1"},
		{6 * store.Second, true, 0, "SERVFAIL; EDE 22"},
		{6 * store.Second, false, 1, "NOERROR; www.example.org. A 192.0.2.1"},
	} {
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
			if c.tried {
				s.TryStream("", w.now+c.since)
			}
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

// Where nothing comes over UDP, all is asked over TCP soon, and then at once, for a while. A reply over UDP ends that.
func TestOnlyTCP(t *testing.T) {
	w := small(t)
	blocked := true
	for at, good := range w.servers {
		w.servers[at] = func(q *dns.Msg, tcp bool) *dns.Msg {
			if blocked && !tcp {
				return nil
			}
			return good(q, tcp)
		}
	}
	count := func(name, want string) (udp, tcp int) {
		w.asked = nil
		w.want(name, "A", want)
		for _, a := range w.asked {
			if a.tcp {
				tcp++
			} else {
				udp++
			}
		}
		return udp, tcp
	}
	const www = "NOERROR; www.example.org. A 192.0.2.1"
	began := w.now
	udp, tcp := count("www.example.org.", www)
	if took := w.now - began; took > 5*store.Second {
		t.Errorf("that took %v", time.Duration(took))
	}
	if udp == 0 || udp > 10 || tcp < 4 { // priming, and three zones
		t.Errorf("first: %d queries over UDP, %d over TCP", udp, tcp)
	}
	udp, tcp = 0, 0
	for i := range 40 { // now and then one goes to the server that was not asked over TCP
		u, s := count(fmt.Sprintf("n%d.example.org.", i), "NXDOMAIN")
		udp, tcp = udp+u, tcp+s
	}
	if udp > 10 || tcp < 40 {
		t.Errorf("then: %d queries over UDP, %d over TCP", udp, tcp)
	}
	w.now += 61 * store.Second
	if udp, tcp = count("later.example.org.", "NXDOMAIN"); udp == 0 || tcp == 0 {
		t.Errorf("later: %d queries over UDP, %d over TCP", udp, tcp)
	}
	w.now += 61 * store.Second
	blocked = false
	if udp, tcp = count("good.example.org.", "NXDOMAIN"); udp == 0 || tcp > 0 {
		t.Errorf("when UDP works: %d queries over UDP, %d over TCP", udp, tcp)
	}
}

// Servers that are wholly silent are asked over TCP, each once in ten seconds at most, whatever is asked for.
func TestSilentOverTCP(t *testing.T) {
	w := small(t)
	last, n := map[netip.Addr]store.Time{}, 0
	w.wild = func(a Action) *Event {
		at := a.Server.Addr.Addr()
		if at != addr("10.0.2.1") && at != addr("10.0.2.2") {
			return nil
		}
		if a.TCP {
			n++
			if was, ok := last[at]; ok && w.now-was < 10*store.Second {
				t.Errorf("%v is asked after %v", at, time.Duration(w.now-was))
			}
			last[at] = w.now
		}
		w.now += store.Time(a.Wait)
		return &Event{Kind: TimedOut}
	}
	began := w.now
	for i := range 40 {
		w.want(fmt.Sprintf("n%d.example.org.", i), "A", "SERVFAIL; EDE 22")
	}
	if n == 0 || n > 2*(1+int((w.now-began)/(10*store.Second))) {
		t.Errorf("%d queries over TCP in %v", n, time.Duration(w.now-began))
	}
}
