package grpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/policy"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// delayed answers after a delay in milliseconds; -1 is an error at once.
func delayed(addr string, delay *atomic.Int64) func(*dns.Msg) (*dns.Msg, error) {
	good := says(0, "www.example.org. 60 IN A "+addr)
	return func(r *dns.Msg) (*dns.Msg, error) {
		d := delay.Load()
		if d < 0 {
			return nil, status.Error(codes.Unavailable, "as it should")
		}
		time.Sleep(time.Duration(d) * time.Millisecond)
		return good(r)
	}
}

func answered(g *GRPC) string {
	m, rcode, err := ask(g, "www.example.org.")
	if m == nil || len(m.Answer) == 0 {
		return fmt.Sprintf("%d %v", rcode, err)
	}
	return m.Answer[0].(*dns.A).A.String()
}

func TestHedge(t *testing.T) {
	var first, second atomic.Int64
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: delayed("192.0.2.1", &first)}), serve(t, "tcp", "127.0.0.1:0", &service{answer: delayed("192.0.2.2", &second)}))
	g.hedge = true
	for range 40 {
		answered(g)
	}
	before := testutil.ToFloat64(hedges.WithLabelValues(g.proxies[1].addr))
	first.Store(3000)
	began := time.Now()
	if got := answered(g); got != "192.0.2.2" || time.Since(began) > 2500*time.Millisecond {
		t.Errorf("%s after %v", got, time.Since(began))
	}
	if n := testutil.ToFloat64(hedges.WithLabelValues(g.proxies[1].addr)) - before; n != 1 {
		t.Errorf("%v second upstreams were asked", n)
	}
	// The second one fails: the first is waited for. Both fail: that is all.
	first.Store(200)
	second.Store(-1)
	if got := answered(g); got != "192.0.2.1" {
		t.Error(got)
	}
	first.Store(-1)
	if _, _, err := ask(g, "www.example.org."); status.Code(errors.Unwrap(err)) != codes.Unavailable {
		t.Error(err)
	}
	// Both are silent: both have failed.
	first.Store(1000)
	second.Store(1000)
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if _, tried, err := g.ask(ctx, new(dns.Msg).SetQuestion("a.", dns.TypeA)); err == nil || tried.failed != 2 || tried.last == nil {
		t.Errorf("%+v, %v", tried, err)
	}
}

func TestFastest(t *testing.T) {
	var slow, quick atomic.Int64
	slow.Store(150) // more than a busy machine makes of the other one's time
	services := []*service{{answer: delayed("192.0.2.1", &slow)}, {answer: delayed("192.0.2.2", &quick)}}
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", services[0]), serve(t, "tcp", "127.0.0.1:0", services[1]))
	g.policy = policy.Named("fastest")
	for range 100 {
		answered(g)
	}
	if s, q := services[0].asked.Load(), services[1].asked.Load(); s == 0 || s > 25 || q < 75 {
		t.Errorf("the slow one got %d queries, the quick one %d", s, q)
	}
}

// A race that nobody waits for ends.
func TestRaceIsCancelled(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	stuck := func(r *dns.Msg) (*dns.Msg, error) { <-release; return r.SetReply(r), nil }
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: stuck}), serve(t, "tcp", "127.0.0.1:0", &service{answer: stuck}))
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	r := &race{order: g.proxies, slow: time.Millisecond}
	packet, _ := new(dns.Msg).SetQuestion("a.", dns.TypeA).Pack()
	if _, err := r.run(ctx, packet, new(dns.Msg)); status.Code(errors.Unwrap(err)) != codes.Canceled || r.failed != 2 {
		t.Errorf("%v, %d have failed", err, r.failed)
	}
}

// An upstream that hangs leaves time to ask others, which are asked once, too. It may be the one that replies in the end.
func TestOneHangs(t *testing.T) {
	var quick atomic.Int64
	release := make(chan struct{})
	services := []*service{{answer: func(r *dns.Msg) (*dns.Msg, error) {
		<-release
		return says(0, "www.example.org. 60 IN A 192.0.2.1")(r)
	}}, {answer: delayed("192.0.2.2", &quick)}}
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", services[0]), serve(t, "tcp", "127.0.0.1:0", services[1]))
	began := time.Now()
	if got := answered(g); got != "192.0.2.2" || time.Since(began) < patience || time.Since(began) > patience+time.Second {
		t.Errorf("%s after %v", got, time.Since(began))
	}
	quick.Store(-1) // the second one fails meanwhile
	time.AfterFunc(patience+500*time.Millisecond, func() { close(release) })
	if got := answered(g); got != "192.0.2.1" {
		t.Error(got)
	}
	if s, q := services[0].asked.Load(), services[1].asked.Load(); s != 2 || q != 2 {
		t.Errorf("asked %d and %d times", s, q)
	}
}

func TestHopByHopOptions(t *testing.T) {
	hops := []dns.EDNS0{
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"},
		&dns.EDNS0_LOCAL{Code: 65500, Data: []byte("abc")},
		&dns.EDNS0_PADDING{Padding: make([]byte, 16)},
	}
	var seen atomic.Pointer[dns.Msg]
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: func(r *dns.Msg) (*dns.Msg, error) {
		seen.Store(r.Copy())
		m := new(dns.Msg).SetReply(r)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = hops
		return m, nil
	}}))
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	r.SetEdns0(1232, false)
	r.IsEdns0().Option = hops
	m, _, err := g.ask(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	for who, m := range map[string]*dns.Msg{"upstream": seen.Load(), "client": m} {
		if o := m.IsEdns0().Option; len(o) != 1 || o[0].Option() != 65500 {
			t.Errorf("the %s saw %v", who, o)
		}
	}
	if len(r.IsEdns0().Option) != 3 {
		t.Error("the client's query was changed")
	}
}
