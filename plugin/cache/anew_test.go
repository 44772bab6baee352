package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// A resolver below is told of an answer that is fetched again while it is good, for it keeps it as long. Misses, and what
// is fetched again after its end, are nothing of the kind.
func TestAnswersWantedAnew(t *testing.T) {
	type told struct {
		left int
		ok   bool
	}
	asked := make(chan told, 1)
	c := New()
	began := time.Now()
	var passed atomic.Int64
	c.now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	c.prefetch, c.percentage, c.duration, c.stale = 1, 50, time.Hour, time.Hour
	c.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		left, ok := advice.Refreshes(ctx)
		asked <- told{left, ok}
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A("www.example.org. 60 IN A 192.0.2.2")}
		return 0, w.WriteMsg(m)
	})
	for _, step := range []struct {
		after time.Duration
		want  told
	}{{0, told{}}, {45 * time.Second, told{15, true}}, {70 * time.Second, told{}}} {
		passed.Add(int64(step.after))
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := c.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); err != nil || rec.Msg == nil {
			t.Fatal(err)
		}
		if got := <-asked; got != step.want {
			t.Errorf("after %s: told %v, want %v", step.after, got, step.want)
		}
		eventually.Holds(t, "no refresh runs", func() bool { return len(c.refreshes) == 0 })
	}
}
