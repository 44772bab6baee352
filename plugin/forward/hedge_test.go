package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// moody answers with addr as long as it is in the mood; then it says nothing.
type moody struct {
	sulks atomic.Bool
	asked atomic.Int64
}

func (m *moody) answer(addr string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, r *dns.Msg) {
		if m.asked.Add(1); !m.sulks.Load() {
			says(addr)(w, r)
		}
	}
}

// bothLanes is answered and answeredWire.
func bothLanes(t *testing.T, run func(t *testing.T, ask func(f *Forward, name string) string)) {
	t.Run("message", func(t *testing.T) { run(t, func(f *Forward, name string) string { return answered(f, name) }) })
	t.Run("wire", func(t *testing.T) { run(t, func(f *Forward, name string) string { return answeredWire(t, f, name) }) })
}

// know asks each upstream often enough that f knows how long it takes.
func know(t *testing.T, f *Forward) {
	t.Helper()
	for _, p := range *f.upstreams.Load() {
		for i := 0; p.Latency().Slow() == 0; i++ {
			if i > 5000 {
				t.Fatalf("nothing is known of %s", p.Addr())
			}
			answered(f, "know.example.org.")
		}
	}
}

func TestHedge(t *testing.T) {
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		var first, second moody
		f := configured(t, "forward . "+upstream(t, first.answer("192.0.2.1"))+" "+upstream(t, second.answer("192.0.2.2"))+" {\npolicy sequential\nhedge\n}")
		for range 40 {
			ask(f, "know.example.org.")
		}
		before := testutil.ToFloat64(hedges.WithLabelValues((*f.upstreams.Load())[1].Addr()))
		first.sulks.Store(true)
		began := time.Now()
		for i := range 5 {
			if got := ask(f, fmt.Sprintf("a%d.example.org.", i)); got != "192.0.2.2" {
				t.Error(got)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("five queries took %v", took)
		}
		if n := testutil.ToFloat64(hedges.WithLabelValues((*f.upstreams.Load())[1].Addr())) - before; n != 5 {
			t.Errorf("%v second upstreams were asked", n)
		}
		if n := (*f.upstreams.Load())[0].Fails(); n != 0 {
			t.Errorf("who was slow only is said to have failed %d checks", n)
		}
	})
}

// Both upstreams of a hedge are told to those who are told each attempt; of the one that was slower there is no reply.
func TestHedgeIsTapped(t *testing.T) {
	var first, second moody
	f := configured(t, "forward . "+upstream(t, first.answer("192.0.2.1"))+" "+upstream(t, second.answer("192.0.2.2"))+" {\npolicy sequential\nhedge\nread_timeout 150ms\nmax_fails 0\nmax_connect_attempts 2\n}")
	for range 40 {
		answered(f, "know.example.org.")
	}
	var l taps
	f.taps = []dnstapped{{&l, true}}
	ports := map[uint32]int{}
	for i, p := range *f.upstreams.Load() {
		ports[uint32(netip.MustParseAddrPort(p.Addr()).Port())] = i + 1
	}
	told := func() (all []string) {
		t.Helper()
		l = nil
		answered(f, "www.example.org.")
		for _, m := range l {
			all = append(all, fmt.Sprint(m.GetType(), " ", ports[m.GetResponsePort()]))
			if m.GetQueryPort() == 0 || len(m.QueryMessage)+len(m.ResponseMessage) == 0 {
				t.Errorf("%v", m)
			}
		}
		return all
	}
	first.sulks.Store(true)
	if got, want := told(), "[FORWARDER_QUERY 1 FORWARDER_QUERY 2 FORWARDER_RESPONSE 2]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
	second.sulks.Store(true)
	if got, want := told(), "[FORWARDER_QUERY 1 FORWARDER_QUERY 2]"; fmt.Sprint(got) != want {
		t.Errorf("both failed: %v, want %v", got, want)
	}
}

// A failure counts when both have failed; then the next upstream has its turn.
func TestBothRacersFail(t *testing.T) {
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		var first, second, third moody
		f := configured(t, "forward . "+upstream(t, first.answer("192.0.2.1"))+" "+upstream(t, second.answer("192.0.2.2"))+" "+upstream(t, third.answer("192.0.2.3"))+
			" {\npolicy sequential\nhedge\nread_timeout 150ms\nmax_fails 0\n}")
		for range 40 {
			ask(f, "know.example.org.")
		}
		first.sulks.Store(true)
		second.sulks.Store(true)
		if got := ask(f, "www.example.org."); got != "192.0.2.3" {
			t.Error(got)
		}
		third.sulks.Store(true)
		if got := ask(f, "www.example.org."); !strings.Contains(got, "SERVFAIL") || !strings.Contains(got, "timeout") {
			t.Error(got)
		}
	})
}

// A datagram that was lost is sent again, soon.
func TestHedgeOfOne(t *testing.T) {
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		var asked atomic.Int64
		var loses atomic.Bool
		f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
			if asked.Add(1); !loses.CompareAndSwap(true, false) {
				says("192.0.2.1")(w, r)
			}
		})+" {\nhedge\n}")
		for range 40 {
			ask(f, "know.example.org.")
		}
		loses.Store(true)
		before, began := asked.Load(), time.Now()
		if got := ask(f, "www.example.org."); got != "192.0.2.1" || time.Since(began) > time.Second || asked.Load()-before < 2 {
			t.Errorf("%s after %v, asked %d times", got, time.Since(began), asked.Load()-before)
		}
	})
}

// Without the option, and without a policy that includes it, nobody is asked whom the policy does not name.
func TestNoHedgeByDefault(t *testing.T) {
	for _, policy := range []string{"random", "round_robin", "sequential"} {
		f := configured(t, "forward . "+loopback.Addr()+" {\npolicy "+policy+"\n}")
		if f.rules.hedge || (*f.upstreams.Load())[0].Latency() != nil {
			t.Errorf("%s hedges", policy)
		}
	}
}

func TestFastest(t *testing.T) {
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		var slow, quick atomic.Int64
		f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
			slow.Add(1)
			time.Sleep(15 * time.Millisecond)
			says("192.0.2.1")(w, r)
		})+" "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
			quick.Add(1)
			says("192.0.2.2")(w, r)
		})+" {\npolicy fastest\n}")
		for range 300 {
			if got := ask(f, "www.example.org."); got != "192.0.2.1" && got != "192.0.2.2" {
				t.Fatal(got)
			}
		}
		if s, q := slow.Load(), quick.Load(); s == 0 || s > 60 || q < 240 {
			t.Errorf("the slow one got %d queries, the quick one %d", s, q)
		}
		first := 0
		for range 200 {
			if f.List()[0] == (*f.upstreams.Load())[1] {
				first++
			}
		}
		if first < 150 {
			t.Errorf("the quick one leads %d of 200 lists", first)
		}
	})
}

// A hedge ends when its query's client has gone.
func TestRaceIsCancelled(t *testing.T) {
	var first, second moody
	f := configured(t, "forward . "+upstream(t, first.answer("192.0.2.1"))+" "+upstream(t, second.answer("192.0.2.2"))+" {\npolicy fastest\n}")
	know(t, f)
	first.sulks.Store(true)
	second.sulks.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	rcode, err := f.ServeDNS(ctx, &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	if took := time.Since(began); rcode != dns.RcodeServerFailure || !errors.Is(err, context.Canceled) || took > time.Second {
		t.Errorf("%d %v after %v", rcode, err, took)
	}
}

// If the first one fails while the second is asked, too, the second is waited for, and asked once only.
func TestFirstRacerFails(t *testing.T) {
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		var breaks atomic.Bool
		var asked atomic.Int64
		first := patient(t, "tcp", func(w dns.ResponseWriter, r *dns.Msg) {
			if breaks.Load() {
				time.Sleep(10 * time.Millisecond)
				w.Close()
				return
			}
			says("192.0.2.1")(w, r)
		})
		second := patient(t, "tcp", func(w dns.ResponseWriter, r *dns.Msg) {
			asked.Add(1)
			time.Sleep(300 * time.Millisecond)
			says("192.0.2.2")(w, r)
		})
		f := configured(t, "forward . "+first+" "+second+" {\npolicy sequential\nhedge\nforce_tcp\nmax_fails 0\n}")
		for i := 0; (*f.upstreams.Load())[0].Latency().Slow() == 0 && i < 200; i++ {
			ask(f, "know.example.org.")
		}
		breaks.Store(true)
		eventually.Holds(t, "slow ones are given up", func() bool { n := asked.Load(); time.Sleep(20 * time.Millisecond); return asked.Load() == n })
		asked.Store(0)
		if got := ask(f, "www.example.org."); got != "192.0.2.2" || asked.Load() != 1 {
			t.Errorf("%s, the second was asked %d times", got, asked.Load())
		}
	})
}

// Whoever is first, and however soon the second is asked, each hedge ends once.
func TestRacesEndOnce(t *testing.T) {
	f := configured(t, "forward . "+upstream(t, says("192.0.2.1"))+" "+upstream(t, says("192.0.2.2"))+" {\nhedge\n}")
	ups := *f.upstreams.Load()
	query, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 400 {
				o := &ends{told: make(chan struct{}, 2)}
				r := f.newHedge(o, ups[0], ups[1], time.Duration(1+(i*j)%3*50_000), proxy.Exchange{Query: append([]byte(nil), query...)})
				r.begin()
				if j%10 == 9 {
					r.cancel(errors.New("enough"))
				}
				<-o.told
				if r.err != nil && j%10 != 9 || r.err == nil && len(r.reply) == 0 {
					t.Error(r.err)
				}
			}
		})
	}
	wg.Wait()
	if n := twice.Load(); n != 0 {
		t.Errorf("%d were told twice", n)
	}
}

// The first may be about to end, as its time is over, when the second has replied: the query is its owner's all the same.
func TestQueryIsFreeAfterHedge(t *testing.T) {
	const wait = 50 * time.Millisecond
	silent := upstream(t, func(dns.ResponseWriter, *dns.Msg) {})
	slow := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		time.Sleep(2 * wait)
		says("192.0.2.2")(w, r)
	})
	f := configured(t, "forward . "+silent+" "+slow+" {\nhedge\ncase_randomization\n}")
	ups := *f.upstreams.Load()
	query, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	o, others := &ends{told: make(chan struct{}, 2)}, holdUp{make(chan struct{}), make(chan struct{}, 2)}
	own := append([]byte(nil), query...)
	r := f.newHedge(o, ups[0], ups[1], 1, proxy.Exchange{Query: own})
	r.x[0].Timeout = wait
	besides := [2]proxy.Exchange{}
	for i := range besides { // one of them ends before the first of the hedge does
		besides[i] = proxy.Exchange{Query: append([]byte(nil), query...), Timeout: wait, Owner: others}
	}
	ups[0].Begin(&besides[0])
	r.begin()
	ups[0].Begin(&besides[1])
	<-o.told
	clear(own)
	close(others.goOn)
	<-others.ended
	<-others.ended
	if r.won != 1 || strings.Trim(string(own), "\x00") != "" {
		t.Errorf("upstream %d replied; its owner's memory has %q", r.won, own)
	}
}

// holdUp holds up who ends exchanges.
type holdUp struct{ goOn, ended chan struct{} }

func (h holdUp) EndExchange(*proxy.Exchange) {
	<-h.goOn
	h.ended <- struct{}{}
}

// ends is told the end of a hedge.
type ends struct {
	told chan struct{}
	n    atomic.Int64
}

var twice atomic.Int64

func (e *ends) hedgeEnded(*hedge, *eventloop.Loop) {
	if e.n.Add(1) > 1 {
		twice.Add(1)
	}
	e.told <- struct{}{}
}

func (e *ends) gone() bool { return false }

// patient is an upstream that closes no connection, however many queries came on it.
func patient(t *testing.T, network string, f dns.HandlerFunc) string {
	t.Helper()
	s := &dns.Server{Handler: f, MaxTCPQueries: -1}
	var addr net.Addr
	if network == "udp" {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.PacketConn, addr = conn, conn.LocalAddr()
	} else {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.Listener, addr = l, l.Addr()
	}
	ready := make(chan struct{})
	s.NotifyStartedFunc = func() { close(ready) }
	go s.ActivateAndServe()
	<-ready
	t.Cleanup(func() { s.Shutdown() })
	return addr.String()
}
