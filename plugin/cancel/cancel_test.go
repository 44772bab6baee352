package cancel

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// witness notes the deadline that it is given.
type witness struct {
	ctx      context.Context
	deadline time.Time
}

func (w *witness) Name() string { return "witness" }
func (w *witness) ServeDNS(ctx context.Context, _ dns.ResponseWriter, _ *dns.Msg) (int, error) {
	w.ctx = ctx
	w.deadline, _ = ctx.Deadline()
	return 7, nil
}
func (w *witness) ServeWire(_ context.Context, _ *wire.Reply, q *wire.Query) wire.Outcome {
	w.deadline = q.Deadline()
	return wire.Block
}
func (w *witness) WireSelf() plugin.Handler { return w }

func TestServeDNS(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 5001 * time.Millisecond, time.Minute: time.Minute} {
		next := new(witness)
		begin := time.Now()
		rc, err := Cancel{Next: next, timeout: timeout}.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg))
		if rc != 7 || err != nil {
			t.Errorf("got %d, %v", rc, err)
		}
		if d := next.deadline.Sub(begin); d < want || d > want+time.Second {
			t.Errorf("deadline after %s, want %s", d, want)
		}
		if next.ctx.Err() == nil {
			t.Error("the context lives on")
		}
	}
	next := test.HandlerFunc(func(ctx context.Context, _ dns.ResponseWriter, _ *dns.Msg) (int, error) {
		<-ctx.Done()
		return dns.RcodeServerFailure, ctx.Err()
	})
	if _, err := (Cancel{Next: next, timeout: time.Millisecond}).ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg)); err != context.DeadlineExceeded {
		t.Errorf("got error %v", err)
	}
}

func TestServeWire(t *testing.T) {
	arrival := time.Now().Add(-time.Second)
	for _, tc := range []struct{ before, want time.Time }{
		{time.Time{}, arrival.Add(time.Minute)},
		{arrival.Add(time.Hour), arrival.Add(time.Minute)},
		{arrival.Add(time.Second), arrival.Add(time.Second)},
	} {
		next := new(witness)
		q := new(wire.Query)
		if err := q.SetMsg(new(dns.Msg).SetQuestion("example.org.", dns.TypeA), wire.Peer{Arrival: arrival}); err != nil {
			t.Fatal(err)
		}
		q.SetDeadline(tc.before)
		if out := (Cancel{Next: next, timeout: time.Minute}).ServeWire(t.Context(), new(wire.Reply), q); out != wire.Block {
			t.Errorf("got %v", out)
		}
		if !next.deadline.Equal(tc.want) {
			t.Errorf("deadline %v, want %v", next.deadline, tc.want)
		}
		if !q.Deadline().Equal(tc.before) {
			t.Errorf("the deadline stays behind: %v", q.Deadline())
		}
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  time.Duration
		err   string
	}{
		{"cancel", 5001 * time.Millisecond, ""},
		{"cancel 5s", 5 * time.Second, ""},
		{"cancel 1h\ncancel 300ms", 300 * time.Millisecond, ""},
		{"cancel 5", 0, `plugin/cancel: Testfile:1 - Error during parsing: invalid duration: "5"`},
		{"cancel foo", 0, `invalid duration: "foo"`},
		{"cancel -1s", 0, `invalid negative duration: "-1s"`},
		{"cancel 0s", 0, `invalid negative duration: "0s"`},
		{"cancel 1s 2s", 0, "Wrong argument count or unexpected line ending after '2s'"},
		{"cancel {\nx\n}", 0, "unknown property 'x'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		if got := dnsserver.GetConfig(c).Plugin[0](nil).(Cancel).after(); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.input, got, tc.want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// What a plugin below leaves changed for the end of the reply stays: bufsize's size is the one that the client is told.
func TestSizeStays(t *testing.T) {
	packet, err := new(dns.Msg).SetQuestion("example.org.", dns.TypeA).SetEdns0(4096, false).Pack()
	if err != nil {
		t.Fatal(err)
	}
	var q wire.Query
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	(Cancel{Next: sizes{new(witness)}}).ServeWire(t.Context(), new(wire.Reply), &q)
	if got := q.EDNS().Size; got != 700 || !q.Deadline().IsZero() {
		t.Errorf("size %d, deadline %s", got, q.Deadline())
	}
}

// sizes leaves another size, as bufsize does.
type sizes struct{ *witness }

func (s sizes) WireSelf() plugin.Handler { return s }

func (sizes) ServeWire(_ context.Context, _ *wire.Reply, q *wire.Query) wire.Outcome {
	q.SetSize(700)
	return wire.Done
}
