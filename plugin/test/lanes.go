package test

import (
	"bytes"
	"context"
	"fmt"
	golog "log"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// WireHandler is a plugin.WireHandler, by its shape.
type WireHandler interface {
	Handler
	ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome
}

// Lanes asks a handler of all queries, in the message lane and in the wire lane, and fails t where a client, an operator
// or a scraper would see a difference: in replies but for the order of records, in errors, in counters of the process and
// counts of its histograms, and in log lines. A query that the wire lane does not decide goes to the message lane, as in
// the server; one that is parked runs again. A handler that decides none of them there fails t, too: nothing would be compared.
//
// create makes the handler, with those below it, once for each lane, as it may keep state. Tests that use Lanes do not
// run in parallel with others that count or log.
func Lanes(t testing.TB, create func() Handler, queries ...*dns.Msg) {
	t.Helper()
	var played [2]lane
	for i := range played {
		played[i].play(t, create(), queries, i == 1)
	}
	message, wired := &played[0], &played[1]
	if wired.decided == 0 {
		t.Errorf("none of %d queries was decided in the wire lane", len(queries))
	}
	for i, r := range queries {
		if m, w := message.results[i], wired.results[i]; m != w {
			t.Errorf("%s\nmessage lane: %s\nwire lane: %s", r.Question[0].String(), m, w)
		}
	}
	for name := range message.counts {
		if m, w := message.counts[name], wired.counts[name]; m != w {
			t.Errorf("%s grows by %v in the message lane, by %v in the wire lane", name, m, w)
		}
	}
	for name := range wired.counts {
		if _, ok := message.counts[name]; !ok {
			t.Errorf("%s grows by %v in the wire lane only", name, wired.counts[name])
		}
	}
	if m, w := message.lines, wired.lines; !slices.Equal(m, w) {
		t.Errorf("logged in the message lane:\n%s\nin the wire lane:\n%s", strings.Join(m, "\n"), strings.Join(w, "\n"))
	}
}

// lane is what came of queries in one of the lanes.
type lane struct {
	results []string
	counts  map[string]float64
	lines   []string // sorted
	decided int      // in the wire lane
}

func (l *lane) play(t testing.TB, h Handler, queries []*dns.Msg, inWire bool) {
	t.Helper()
	var out bytes.Buffer
	golog.SetOutput(&out)
	defer golog.SetOutput(os.Stderr)
	flags := golog.Flags()
	golog.SetFlags(0)
	defer golog.SetFlags(flags)
	before := counters(t)
	for _, r := range queries {
		result, done := "", false
		if wh, ok := h.(WireHandler); ok && inWire {
			result, done = asPacket(t, wh, r)
		}
		if done {
			l.decided++
		} else {
			result = asMessage(h, r.Copy())
		}
		l.results = append(l.results, result)
	}
	l.counts = counters(t)
	for name, n := range before {
		if l.counts[name] -= n; l.counts[name] == 0 {
			delete(l.counts, name)
		}
	}
	for name, n := range l.counts {
		if n == 0 {
			delete(l.counts, name)
		}
	}
	l.lines = strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(l.lines)
}

// recorder keeps the last message that was written.
type recorder struct {
	ResponseWriter
	msg *dns.Msg
}

func (r *recorder) WriteMsg(m *dns.Msg) error {
	r.msg = m.Copy()
	return nil
}

func (r *recorder) Write(b []byte) (int, error) {
	r.msg = new(dns.Msg)
	return len(b), r.msg.Unpack(b)
}

// asMessage is what becomes of r in the message lane.
func asMessage(h Handler, r *dns.Msg) string {
	w := new(recorder)
	rcode, err := h.ServeDNS(context.Background(), w, r)
	m := w.msg
	// Who returns one of these has not written: the server does.
	if m == nil && slices.Contains([]int{dns.RcodeServerFailure, dns.RcodeRefused, dns.RcodeFormatError, dns.RcodeNotImplemented}, rcode) {
		m = new(dns.Msg).SetRcode(r, rcode)
	}
	if m != nil && r.IsEdns0() == nil { // the server takes it out
		m = m.Copy()
		m.Extra = slices.DeleteFunc(m.Extra, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeOPT })
	}
	return describe(m, err)
}

// asPacket is what becomes of r in the wire lane. It reports false if that leaves the query to the message lane.
func asPacket(t testing.TB, h WireHandler, r *dns.Msg) (string, bool) {
	t.Helper()
	packet, err := r.Pack()
	if err != nil {
		t.Fatalf("a query cannot be packed: %v", err)
	}
	var q wire.Query
	var w wire.Reply
	if !decided(h, &w, &q, packet) {
		return "", false
	}
	var m *dns.Msg
	failed := w.Err()
	if w.Failed() { // the server writes the reply, with the options that there are
		rcode := w.Rcode()
		w.Begin(&q)
		w.SetRcode(rcode)
	}
	if w.Holds() {
		m = new(dns.Msg)
		if err := m.Unpack(w.Finish(&q, dns.MaxMsgSize-1)); err != nil {
			t.Errorf("%s: the reply cannot be unpacked: %v", r.Question[0].String(), err)
		}
	}
	return describe(m, failed), true
}

// mostRuns is how often a query may run in the wire lane.
const mostRuns = 8

// decided runs a query in the wire lane, again each time that what it was parked on has ended, and reports whether it was
// decided there.
func decided(h WireHandler, w *wire.Reply, q *wire.Query, packet []byte) bool {
	var ended eventloop.Exchange
	client := new(ResponseWriter)
	for range mostRuns {
		w.Reset(nil)
		if !q.Parse(packet) {
			return false
		}
		q.Client, q.Local = wireAddr(client.RemoteAddr().String()), wireAddr(client.LocalAddr().String())
		q.Peer.Limit = wire.MaxMessage
		q.Await(ended)
		out := h.ServeWire(context.Background(), w, q)
		if out != wire.Park || q.Awaited() == ended {
			return out == wire.Done
		}
		ended = q.Awaited()
		woken := make(eventloop.Waiter)
		q.Wait(woken)
		<-woken
	}
	return false
}

func wireAddr(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// describe is a reply and an error as text in which the order of records does not show, nor what the server adds: the OPT
// record that repeats the query's, and the flags that do.
func describe(m *dns.Msg, err error) string {
	if m == nil {
		return fmt.Sprintf("no reply, error %v", err)
	}
	var b strings.Builder
	h := m.MsgHdr
	fmt.Fprintf(&b, "%s aa=%v tc=%v ra=%v ad=%v", dns.RcodeToString[h.Rcode], h.Authoritative, h.Truncated, h.RecursionAvailable, h.AuthenticatedData)
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		var lines []string
		for _, rr := range section {
			if opt, ok := rr.(*dns.OPT); ok {
				for _, o := range opt.Option {
					lines = append(lines, fmt.Sprintf("option %d %s", o.Option(), o))
				}
				continue
			}
			lines = append(lines, strings.ToLower(rr.String())) // owners follow the case of the question, or of who asked first
		}
		slices.Sort(lines)
		fmt.Fprintf(&b, "\n%s: %s", sect(i), strings.Join(lines, " | "))
	}
	return fmt.Sprintf("%s\nerror %v", b.String(), err)
}

// counters is what the process has counted, by metric and labels.
func counters(t testing.TB) map[string]float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "coredns_") {
			continue
		}
		for _, m := range f.GetMetric() {
			name := fmt.Sprint(f.GetName(), m.GetLabel())
			switch {
			case m.Counter != nil:
				all[name] = m.Counter.GetValue()
			case m.Histogram != nil:
				all[name] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return all
}
