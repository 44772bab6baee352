package cache

import (
	"context"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// An answer that was asked for before a flush, and comes after it, is handed on and not kept. One that was asked for later is.
func TestFlushAndAnswerUnderWay(t *testing.T) {
	asked, answer, calls := make(chan struct{}), make(chan struct{}), 0
	c := New()
	c.Next = test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if calls++; calls == 1 {
			close(asked)
			<-answer
		}
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A("www.example.org. 300 IN A 192.0.2.1")}
		return dns.RcodeSuccess, w.WriteMsg(m)
	})
	query := func() *dnstest.Recorder {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := c.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); err != nil {
			t.Error(err)
		}
		return rec
	}
	done := make(chan *dnstest.Recorder)
	go func() { done <- query() }()
	<-asked
	c.CacheFlush(status.Match{Name: []byte{0}, Below: true})
	close(answer)
	if rec := <-done; rec.Msg == nil || len(rec.Msg.Answer) != 1 {
		t.Errorf("the client got %v", rec.Msg)
	}
	if s := c.CacheStatus(); s.Answers != 0 {
		t.Errorf("%d answers are kept that were asked for before the flush", s.Answers)
	}
	time.Sleep(time.Millisecond) // the clock may be coarse
	query()
	if s := c.CacheStatus(); s.Answers != 1 || calls != 2 {
		t.Errorf("%d answers are kept after %d queries", s.Answers, calls)
	}
	query()
	if calls != 2 {
		t.Errorf("%d queries went through", calls)
	}
}
