package cache

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// world is a cache on a clock of its own, above a plugin that answers what the test says.
type world struct {
	t     *testing.T
	c     *Cache
	clock atomic.Int64 // seconds since the test began
	asked atomic.Int64 // how often the plugin below was asked
	start time.Time

	oneLane bool // the wire lane is not asked, too

	mu     sync.Mutex
	answer func(w dns.ResponseWriter, r *dns.Msg) (int, error)
}

func newWorld(t *testing.T, change func(*settings)) *world {
	w := &world{t: t, c: New(), start: time.Now()}
	w.c.now = func() time.Time { return w.start.Add(time.Duration(w.clock.Load()) * time.Second) }
	if change != nil {
		change(&w.c.settings)
	}
	w.c.Next = plugin.HandlerFunc(func(_ context.Context, rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		w.asked.Add(1)
		w.mu.Lock()
		f := w.answer
		w.mu.Unlock()
		return f(rw, r)
	})
	return w
}

func (w *world) below(f func(w dns.ResponseWriter, r *dns.Msg) (int, error)) {
	w.mu.Lock()
	w.answer = f
	w.mu.Unlock()
}

// says makes the plugin below answer with rcode and records: "ns " and "ar " before one put it there.
func (w *world) says(rcode int, records ...string) {
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetRcode(r, rcode)
		m.RecursionAvailable = true
		for _, s := range records {
			section := &m.Answer
			if rest, ok := strings.CutPrefix(s, "ns "); ok {
				s, section = rest, &m.Ns
			} else if rest, ok := strings.CutPrefix(s, "ar "); ok {
				s, section = rest, &m.Extra
			}
			rr, err := dns.NewRR(s)
			if err != nil {
				w.t.Fatal(err)
			}
			*section = append(*section, rr)
		}
		return 0, rw.WriteMsg(m)
	})
}

// ask asks and returns the reply, nil if none was written, and the rcode of ServeDNS.
func (w *world) ask(name string, qtype uint16, change func(*dns.Msg)) (*dns.Msg, int) {
	w.t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	if change != nil {
		change(m)
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rc, _ := w.c.ServeDNS(context.Background(), rec, m)
	w.onWire(m, rec.Msg)
	return rec.Msg, rc
}

// onWire compares with the wire lane, which answers what was just kept.
func (w *world) onWire(m, got *dns.Msg) {
	p, _ := m.Pack()
	var q wire.Query
	if got == nil || w.oneLane || !q.Parse(p) {
		return
	}
	var r wire.Reply
	r.Reset(make([]byte, 0, 4096))
	if w.c.ServeWire(context.Background(), &r, &q) != wire.Done {
		return
	}
	lane := new(dns.Msg)
	if err := lane.Unpack(r.Finish(&q, 1232)); err != nil {
		w.t.Fatal(err)
	}
	if len(lane.Answer) != len(got.Answer) || len(lane.Ns) != len(got.Ns) || lane.Rcode != got.Rcode || lane.AuthenticatedData != got.AuthenticatedData {
		w.t.Errorf("%s: lanes differ:\n%v\n%v", m.Question[0].Name, got, lane)
	}
}

// count asks and reports how many times the plugin below was asked for it, and the TTL of the
// first record of the reply, -1 without records.
func (w *world) count(name string, qtype uint16) (asked int64, ttl int) {
	w.t.Helper()
	before := w.asked.Load()
	m, _ := w.ask(name, qtype, nil)
	ttl = -1
	if m != nil {
		for _, rr := range append(m.Answer, m.Ns...) {
			ttl = int(rr.Header().Ttl)
			break
		}
	}
	return w.asked.Load() - before, ttl
}

const (
	aRecord = "example.org. 300 IN A 192.0.2.1"
	soa900  = "ns org. 900 IN SOA a.org. b.org. 1 2 3 4 60"
)

// changing changes messages before they are written.
type changing struct {
	dns.ResponseWriter
	change func(*dns.Msg)
}

func (c changing) WriteMsg(m *dns.Msg) error {
	m = m.Copy()
	c.change(m)
	return c.ResponseWriter.WriteMsg(m)
}

// kept is the positive entry of example.org. A.
func (w *world) kept() *entry {
	w.t.Helper()
	var q wire.Query
	q.SetMsg(new(dns.Msg).SetQuestion("example.org.", dns.TypeA), wire.Peer{})
	k := w.c.questionOf(&q)
	e := w.c.positive.get(&k.key)
	if e == nil {
		w.t.Fatal("no entry")
	}
	return e
}
