package validator

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventloop/echotest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// While signatures are computed on each processor, those who serve sockets have a turn after every other. Else it would
// be every ten milliseconds, which are more than a hundred signatures.
func TestOthersServeBetweenChecks(t *testing.T) {
	v, s := lab(t, "")
	reply := func(name string, typ string) *rrset.Message {
		m := s.replies[name+typ].Copy()
		m.SetQuestion(name, map[string]uint16{"A": 1, "DNSKEY": 48}[typ])
		p, err := parse(m)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	keys, answer := reply("example.", "DNSKEY"), reply("www.example.", "A")
	step := func() {
		v.memory.checks.forget()
		task := validate.New(&v.live.Load().conf, questionOf(t, "www.example."), answer, v.now())
		for missing := v.step(task); len(missing) > 0; missing = v.step(task) {
			task.Give(missing[0], keys)
		}
		if verdict := task.Verdict(); verdict.Status != validate.Secure {
			t.Fatal(verdict)
		}
	}
	step()
	e := echotest.Start(t)
	others := int32(computed.most - 1)
	computing.Add(others)
	defer computing.Add(-others)
	n := e.During(func() {
		for range 200 {
			step()
		}
	})
	if n < 10 {
		t.Errorf("%d datagrams and back between 200 checks", n)
	}
}

// order is the steps that a queue computes: each notes its name.
type order struct {
	*queue
	names []string
}

func newOrder() *order { return &order{queue: newQueue(0)} } // nobody computes

func (o *order) add(client, zone string, names ...string) {
	zone, err := rrset.Name(zone)
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		note := func(s string) func() { return func() { o.names = append(o.names, s) } }
		o.queue.add(netip.MustParseAddr(client), zone, &waiting{compute: note(name), giveUp: note("no " + name), place: eventloop.Parked})
	}
}

// take is the names of the next n steps.
func (o *order) take(n int) string {
	o.names = nil
	for range n {
		o.next()()
	}
	return strings.Join(o.names, " ")
}

// A client with many steps does not have those of others wait for all of them, whatever he asks about.
func TestClientsHaveTurns(t *testing.T) {
	o := newOrder()
	for _, name := range []string{"a1", "a2", "a3", "a4", "a5", "a6"} {
		o.add("192.0.2.1", name+".example.", name)
	}
	o.add("2001:db8::1", "a6.example.", "b1")
	o.add("2001:db8:0:ff::2", "a6.example.", "b2") // of the same network
	o.add("192.0.2.3", "a6.example.", "c1")
	if got := o.take(5); got != "a1 a2 b1 a3 c1" {
		t.Errorf("computed were %s", got)
	}
	o.add("192.0.2.3", "a6.example.", "c2")
	if got := o.take(5); got != "a4 a5 a6 b2 c2" {
		t.Errorf("computed were %s", got)
	}
	if o.left != 0 || len(o.clients.waiting)+len(o.zones.waiting)+len(o.clients.order)+len(o.zones.order) != 0 {
		t.Errorf("%d steps are left", o.left)
	}
}

// Many clients who ask about one zone have just that one wait: what is asked about others has turns of its own.
func TestZonesHaveTurns(t *testing.T) {
	o := newOrder()
	for i := range 100 {
		o.add(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String(), strings.Repeat("x.", i%5)+"Evil.test.", "evil")
	}
	o.add("198.51.100.1", "www.good.test.", "good")
	o.add("198.51.100.1", "test.", "test")
	if got := o.take(6); got != "evil evil evil good evil test" {
		t.Errorf("computed were %s", got)
	}
	if o.take(o.left); o.clients.most > smallTurns || cap(o.clients.order) > smallTurns {
		t.Errorf("the room for %d clients is kept", o.clients.most)
	}
}

// A top-level domain whose owner makes as many zones of it as he likes has just its own names wait.
func TestTopLevelDomainsHaveTurns(t *testing.T) {
	o := newOrder()
	for i := range 100 {
		o.add(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String(), fmt.Sprintf("www.x%d.Evil.", i), "evil")
	}
	o.add("198.51.100.1", "www.good.test.", "good")
	o.add("198.51.100.2", "www.other.test.", "other")
	if got := o.take(8); got != "evil evil evil good evil evil evil other" {
		t.Errorf("computed were %s", got)
	}
	o.names = nil
	for _, end := o.giver(eventloop.Parked); end != nil; _, end = o.giver(eventloop.Parked) {
		end()
	}
	if got := strings.Join(o.names, " "); got != strings.TrimSuffix(strings.Repeat("no evil ", 100-6-crowdOfDomain+1), " ") {
		t.Errorf("gave way did %s", got)
	}
	if o.take(o.left); len(o.zones.order)+len(o.zones.waiting) != 0 {
		t.Errorf("%d domains are left", len(o.zones.waiting))
	}
}

// busy has all that compute do nothing until it is called.
func busy(t *testing.T) (end func()) {
	waits(t, 0) // what other tests have left is computed
	ended := make(chan struct{})
	var began sync.WaitGroup
	for range computed.most {
		began.Add(1)
		computed.add(netip.Addr{}, rrset.Root, &waiting{compute: func() { began.Done(); <-ended }})
	}
	end = sync.OnceFunc(func() { close(ended) })
	t.Cleanup(end)
	began.Wait()
	return end
}

// waits waits until n steps wait.
func waits(t *testing.T, n int) {
	t.Helper()
	eventually.Holds(t, "steps wait", func() bool {
		computed.mu.Lock()
		defer computed.mu.Unlock()
		return computed.left == n
	})
}

// The steps of an inquiry have their turns as those of checks: so neither waits for all of the others.
func TestInquiriesHaveTurns(t *testing.T) {
	v, s := lab(t, "")
	end := busy(t)
	verdict := inquired(t, v, s)
	waits(t, 1)
	end()
	if got := <-verdict; got.Status != validate.Secure {
		t.Error(got)
	}
}

// inquired is the verdict of an inquiry.
func inquired(t *testing.T, v *Validator, s *source) <-chan *validate.Verdict {
	done := make(chan *validate.Verdict, 1)
	m := s.replies["www.example.A"].Copy()
	m.SetQuestion("www.example.", 1)
	w := &absent{peer: wire.Peer{Client: netip.MustParseAddrPort("192.0.2.2:53")}}
	i := &inquiry{
		Validator: v, client: t.Context(), ctx: t.Context(), place: eventloop.Parked, w: w, q: questionOf(t, "www.example."),
		query: fetching(questionOf(t, "www.example.")), sources: map[validate.Question]*advice.Source{},
	}
	go func() {
		verdict, _ := i.judge(m)
		done <- verdict
	}()
	return done
}

// What gives way to other queries gets no answer, and nobody takes its name for bogus after that.
func TestInquiriesGiveWay(t *testing.T) {
	v, s := lab(t, "")
	busy(t)
	verdict := inquired(t, v, s)
	waits(t, 1)
	if eventloop.MakeRoom(eventloop.Parked) {
		t.Error("one of few gave way")
	}
	for range crowd - 1 { // of the same client, later
		computed.add(netip.MustParseAddr("192.0.2.2"), rrset.Root, &waiting{compute: func() {}, giveUp: func() { t.Error("a later one gave way") }, place: eventloop.Parked})
	}
	if _, end := computed.giver(eventloop.AtWork); end != nil {
		t.Error("one gave a place that it had not")
	}
	if !eventloop.MakeRoom(eventloop.Parked) {
		t.Fatal("none gave way")
	}
	if got := <-verdict; got.Status != validate.Bogus || !got.Over {
		t.Error(got)
	}
	if f, ok := v.known(questionOf(t, "www.example.")); ok {
		t.Errorf("it is known: %v", f)
	}
}

// What gave way is not counted or logged as bogus, and no reply that nobody has judged passes where bogus ones do.
func TestWhatGaveWayIsNotBogus(t *testing.T) {
	for _, lane := range []string{"message", "wire"} {
		v, s := lab(t, "permissive\n")
		logged := logtest.Capture(t)
		end := busy(t)
		client := netip.MustParseAddr("10.240.0.1")
		done := make(chan error, 1)
		var rec *dnstest.Recorder
		c := &check{Validator: v, ctx: t.Context(), asked: questionOf(t, "www.example."), trust: v.live.Load(), peer: wire.Peer{Client: netip.AddrPortFrom(client, 53)}, began: time.Now()}
		query := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
		var below wire.Reply
		if below.Reset(nil); below.SetMsgOPT(s.replies["www.example.A"].Copy().SetReply(query)) != nil {
			t.Fatal("no reply")
		}
		c.below = below.Copied()
		go func() {
			var err error
			if lane == "message" {
				rec = dnstest.NewRecorder(&test.ResponseWriter{RemoteIP: client.String()})
				_, err = v.ServeDNS(context.WithValue(t.Context(), eventloop.PlaceKey{}, eventloop.AtWork), rec, query)
			} else if c.query, err = query.Pack(); err == nil {
				c.inquire(nil)
			}
			done <- err
		}()
		waits(t, 1)
		for range crowd - 1 {
			computed.add(client, rrset.Root, &waiting{compute: func() {}, giveUp: func() {}})
		}
		if !eventloop.MakeRoom(eventloop.AtWork | eventloop.Parked) {
			t.Fatal("none gave way")
		}
		switch err := <-done; {
		case lane == "message" && (!errors.Is(err, eventloop.ErrGaveWay) || rec.Msg != nil):
			t.Errorf("in the message lane: %v, reply %v", err, rec.Msg)
		case lane == "wire" && (err != nil || c.verdict != nil):
			t.Errorf("in the wire lane: %v, verdict %v", err, c.verdict)
		}
		if strings.Contains(logged.String(), "bogus") {
			t.Errorf("logged was %s", logged)
		}
		end()
	}
}

// Places are given by the client or the zone that has most of them.
func TestMostGiveWay(t *testing.T) {
	o := newOrder()
	o.add("192.0.2.1", "good.test.", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8")
	for i := range 10 {
		o.add(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String(), "evil.test.", "e"+string(rune('0'+i)))
	}
	o.add("203.0.113.1", "other.test.", "o1")
	if got := o.take(1); got != "g1" {
		t.Errorf("computed was %s", got)
	}
	o.names = nil
	for _, end := o.giver(eventloop.Parked); end != nil; _, end = o.giver(eventloop.Parked) {
		if before := o.left; !end() || end() || o.left != before-1 {
			t.Errorf("%d wait, of %d before one gave way, once", o.left, before)
		}
	}
	if got := strings.Join(o.names, " "); got != "no e0 no e1 no e2" {
		t.Errorf("gave way did %s", got)
	}
	if got := o.take(o.left); !strings.Contains(got, "o1") || strings.Count(got, "g") != 7 || strings.Count(got, "e") != 7 {
		t.Errorf("computed were %s", got)
	}
}

// A panic of a step is that of who waits for it, and takes no goroutine of the queue away.
func TestPanicsAreTheCallers(t *testing.T) {
	all := newQueue(1)
	for range 2 {
		func() {
			defer func() {
				if v := recover(); v != "oops" {
					t.Errorf("recovered %v", v)
				}
			}()
			all.do(netip.Addr{}, rrset.Root, 0, func() { panic("oops") })
		}()
	}
}
