package recurse

import (
	"context"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// What a cache above wants anew is asked of servers, in both lanes, unless what is kept is younger than the cache's, or that
// has just failed. It is nothing to a validator's own questions.
func TestRefreshThroughTheStores(t *testing.T) {
	const name = "www.example.org."
	s := startSlow(t, time.Millisecond)
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver(t, func(*settings) {})}
	message := func(ctx context.Context) int {
		w := dnstest.NewRecorder(&test.ResponseWriter{})
		_, _ = r.ServeDNS(ctx, w, new(dns.Msg).SetQuestion(name, dns.TypeA))
		if w.Msg == nil {
			return 0
		}
		return len(w.Msg.Answer)
	}
	packet, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	lane := func(ctx context.Context) int {
		var w wire.Reply
		var q wire.Query
		var waits eventloop.Exchange
		for {
			w.Reset(nil)
			q.Parse(packet)
			q.Await(waits)
			if r.ServeWire(ctx, &w, &q) == wire.Done {
				return w.Count(wire.Answer)
			}
			waits = q.Awaited()
			over := make(eventloop.Waiter)
			q.Wait(over)
			<-over
		}
	}
	anew := func(left int) context.Context { return advice.WithRefresh(context.Background(), left) }
	own := advice.With(anew(60), &advice.Source{Proof: true})
	asked := 0
	for i, c := range []struct {
		serve func(context.Context) int
		ctx   context.Context
		asks  bool
	}{
		{message, anew(60), true}, // nothing is kept
		{message, context.Background(), false}, {lane, context.Background(), false},
		{message, anew(30), false}, {lane, anew(30), false}, // 60 seconds are left here
		{message, own, false},
		{message, anew(60), true}, {lane, anew(60), true},
	} {
		answers := c.serve(c.ctx)
		if c.asks {
			asked++
		}
		if answers != 1 || s.count(name) != asked {
			t.Errorf("%d: %d answers, asked %d times, want %d", i, answers, s.count(name), asked)
		}
	}
	r.conf.Stores.Failures.Note(rrset.MustName(name), dns.TypeA, dns.ExtendedErrorCodeNoReachableAuthority, "no reply", r.now())
	if message(anew(60)) != 1 || lane(anew(60)) != 1 || s.count(name) != asked {
		t.Errorf("after a failure: asked %d times, want %d", s.count(name), asked)
	}
}

// A validator above a recurse for some zones needs the keys of those above them, beginning with the root's. What clients ask
// there is for others.
func TestProofsOutsideTheZones(t *testing.T) {
	s := startSlow(t, time.Millisecond)
	passed := 0
	next := plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		passed++
		return dns.RcodeRefused, nil
	})
	r := &Recurse{Next: next, zones: []string{rrset.MustName("example.net.")}, resolver: s.resolver(t, func(*settings) {})}
	for _, c := range []struct {
		source *advice.Source
		passes int
	}{{nil, 1}, {&advice.Source{}, 1}, {&advice.Source{Proof: true}, 0}} {
		ctx := context.Background()
		if c.source != nil {
			ctx = advice.With(ctx, c.source)
		}
		passed = 0
		w := dnstest.NewRecorder(&test.ResponseWriter{})
		rcode, err := r.ServeDNS(ctx, w, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		if passed != c.passes || err != nil || (w.Msg == nil) != (c.passes == 1) {
			t.Errorf("%+v: passed on %d times, want %d; %d, %v, %v", c.source, passed, c.passes, rcode, err, w.Msg)
		}
	}
}
