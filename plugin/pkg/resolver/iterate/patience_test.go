package iterate

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// A near server that is busy for a moment is waited for: the last query that can be sent over UDP has a second, whatever
// the round trip time is, and the one over TCP has three. The queries before it, and those to servers of which there is another, have no more than that
// says.
func TestLastQueryIsPatient(t *testing.T) {
	for what, c := range map[string]struct {
		silent []string
		want   string
	}{"one server, and a lame one": {[]string{"10.0.2.2"}, "50ms 100ms 1s 3s 1s"}, "two": {nil, "50ms 50ms 100ms 100ms 3s 1s"}} {
		w := small(t)
		for _, a := range c.silent { // known not to serve the zone
			w.servers[addr(a)] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeNotAuth) }
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
	if perServer != 3 {
		t.Error("the figures above are for other constants")
	}
	w, said := small(t), ""
	w.conf.Minimise = Off
	w.servers[addr("10.0.2.2")] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) }
	w.wild = func(a Action) *Event {
		if a.Zone != "\x07example\x03org\x00" || a.Server.Addr.Addr() == addr("10.0.2.2") {
			return nil
		}
		said += a.Wait.String() + " "
		w.now++
		return &Event{Kind: TimedOut}
	}
	if w.resolve("busy.example.org.", "A"); said != "400ms 800ms 3s 3s " { // it may be far
		t.Errorf("a server that never replied: waits %s", said)
	}
}

// A server that is far, and has never replied, may come to count as dead by what others asked meanwhile: who has begun to ask
// it waits for it all the same.
func TestPatientWithUnheard(t *testing.T) {
	w := small(t)
	w.conf.Minimise = Off
	w.servers[addr("10.0.2.2")] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeNotAuth) }
	said := ""
	w.wild = func(a Action) *Event {
		if a.Server.Addr.Addr() != addr("10.0.2.1") {
			return nil
		}
		said += a.Wait.String() + " "
		if a.Wait >= 3*time.Second {
			return nil
		}
		for range deadWhen {
			w.now += store.Second
			a.Server.Silent(w.now, a.Wait)
		}
		a.Server.Asked(w.now)
		if !a.Server.Dead(w.now) {
			t.Error("it does not count as dead")
		}
		return &Event{Kind: TimedOut}
	}
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	if !strings.HasPrefix(said, "400ms ") || !strings.HasSuffix(said, " 3s ") {
		t.Errorf("waits %s", said)
	}
}

// A query that is lost on the way to the server that lives is sent there again, before one that counts as dead is probed. Where
// that is probed all the same, which is seldom, it is not waited for as long as one that is slow.
func TestDeadAfterLive(t *testing.T) {
	w := small(t)
	w.conf.Minimise = Off
	for range 40 {
		w.resolve("www.example.org.", "A") // until round trip times are known
		w.conf.Stores.RRsets.Forget("\x07example\x03org\x00", true)
	}
	dead := w.conf.Stores.Servers.Get(netip.AddrPortFrom(addr("10.0.2.2"), 53), func() any { return nil })
	for range deadWhen + 4 {
		w.now += store.Second
		dead.Silent(w.now, dead.Wait())
	}
	w.servers[addr("10.0.2.2")] = nil
	probed := 0
	for i := range 400 {
		w.now += 2 * store.Second
		lost, said := false, []string{}
		w.wild = func(a Action) *Event {
			at := a.Server.Addr.Addr()
			said = append(said, at.String()+" "+a.Wait.String())
			if at == dead.Addr.Addr() && a.Wait > 400*time.Millisecond {
				t.Errorf("asked in turn: %q", said)
			}
			if at == dead.Addr.Addr() || lost {
				return nil
			}
			lost = true
			return &Event{Kind: TimedOut}
		}
		w.resolve(fmt.Sprintf("n%d.example.org.", i), "A")
		if strings.HasPrefix(said[0], "10.0.2.2 ") {
			probed++
			said = said[1:]
		}
		if len(said) != 2 || strings.HasPrefix(said[1], "10.0.2.2 ") {
			t.Fatalf("asked in turn: %q", said)
		}
	}
	if probed == 0 || probed > 60 {
		t.Errorf("the dead server was probed %d times", probed)
	}
}

// A server that was dead, and is as far away as it was before, is found again beside one that lives.
func TestDeadAndFar(t *testing.T) {
	w := small(t)
	w.conf.Minimise = Off
	const rtt = 640 * time.Millisecond
	down, answered := "", map[string]int{}
	w.wild = func(a Action) *Event {
		at := a.Server.Addr.Addr().String()
		if !strings.HasPrefix(at, "10.0.2.") {
			return nil
		}
		if at == down || a.Wait < rtt {
			w.now += store.Time(a.Wait)
			return &Event{Kind: TimedOut}
		}
		answered[at]++
		q := new(dns.Msg).SetQuestion(rrset.Text(a.Question.Name), a.Question.Type)
		b, err := w.servers[a.Server.Addr.Addr()](q, false).Pack()
		if err != nil {
			t.Fatal(err)
		}
		m, err := rrset.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		return &Event{Kind: Replied, Reply: m, RTT: rtt}
	}
	ask := func(n int) {
		for i := range n {
			w.now += store.Second
			w.resolve(fmt.Sprintf("n%d.example.org.", i), "A")
			w.conf.Stores.RRsets.Forget(rrset.MustName("example.org."), true)
		}
	}
	ask(40) // until round trip times are known
	down = "10.0.2.2"
	ask(400)
	v := w.conf.Stores.Servers.Get(netip.AddrPortFrom(addr(down), 53), func() any { return nil })
	if !v.IsDead() {
		t.Fatalf("it is %s", v.State(w.now))
	}
	down = ""
	clear(answered)
	ask(400)
	if v.IsDead() || answered["10.0.2.2"] == 0 {
		t.Errorf("it is %s, answered: %v", v.State(w.now), answered)
	}
}

// What is known of a server may change at any moment, as other Runs ask it, too. A Run that chooses a server whose
// round trip time jumps just then still chooses it.
func TestChoosesWhileOthersLearn(t *testing.T) {
	w := small(t)
	w.resolve("www.example.org.", "A")
	r := New(w.conf, Question{"\x01x\x07example\x03org\x00", dns.TypeA}, false)
	r.now = w.now
	task := &r.first
	task.run, task.cut = r, w.conf.Stores.Delegations.Get("\x07example\x03org\x00", w.now)
	all := task.servers()[:1]
	var stop atomic.Bool
	var others sync.WaitGroup
	others.Go(func() {
		for !stop.Load() {
			for _, s := range all {
				for range deadWhen - 1 {
					s.Silent(w.now, time.Second)
				}
				s.Replied(100*time.Millisecond, true)
			}
		}
	})
	for range 200000 {
		task.here = visit{}
		if task.pick(all, 0) == nil {
			t.Error("a good server is not chosen")
			break
		}
	}
	stop.Store(true)
	others.Wait()
}

const deadWhen = 4 // time-outs
