package erratic

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// serve is the reply to the next query, nil if it is dropped.
func serve(t *testing.T, e *Erratic, name string, typ uint16) (*dns.Msg, int) {
	t.Helper()
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rc, err := e.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion(name, typ))
	if err != nil {
		t.Fatal(err)
	}
	return rec.Msg, rc
}

func TestDrop(t *testing.T) {
	for amount, want := range map[uint64]string{0: "......", 1: "xxxxxx", 2: "x.x.x.", 3: "x..x.."} {
		e := &Erratic{faults: faults{drop: amount}}
		got := ""
		for range 6 {
			m, rc := serve(t, e, "example.org.", dns.TypeA)
			switch {
			case rc != dns.RcodeSuccess:
				t.Errorf("got rcode %d", rc)
			case m == nil:
				got += "x"
			default:
				got += "."
			}
		}
		if got != want {
			t.Errorf("drop %d: %s, want %s", amount, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for amount, want := range map[uint64]string{0: "......", 1: "tttttt", 2: "t.t.t.", 3: "t..t.."} {
		e := &Erratic{faults: faults{truncate: amount}}
		got := ""
		for range 6 {
			if m, _ := serve(t, e, "example.org.", dns.TypeA); m.Truncated {
				got += "t"
			} else {
				got += "."
			}
		}
		if got != want {
			t.Errorf("truncate %d: %s, want %s", amount, got, want)
		}
	}
}

func TestDelay(t *testing.T) {
	const delay = 300 * time.Millisecond
	e := &Erratic{faults: faults{delay: 2, duration: delay}}
	for i := range 4 {
		begin := time.Now()
		serve(t, e, "example.org.", dns.TypeA)
		if took := time.Since(begin); (took >= delay) != (i%2 == 0) {
			t.Errorf("query %d took %s", i, took)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e = &Erratic{faults: faults{delay: 1, duration: time.Hour}}
	if rc, err := e.ServeDNS(ctx, &test.ResponseWriter{}, new(dns.Msg)); rc != dns.RcodeServerFailure || err == nil {
		t.Errorf("got %d, %v", rc, err)
	}
}

// A reply comes as late as it was told to, also if a deadline of *cancel* is over by then.
func TestDelayBeyondDeadline(t *testing.T) {
	const delay = 50 * time.Millisecond
	e := &Erratic{faults: faults{delay: 1, duration: delay}}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	w := dnstest.NewRecorder(&test.ResponseWriter{})
	begin := time.Now()
	rc, err := e.ServeDNS(ctx, w, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
	if took := time.Since(begin); rc != dns.RcodeSuccess || err != nil || w.Msg == nil || took < delay {
		t.Errorf("got %d, %v, %v after %s", rc, err, w.Msg, took)
	}
}

func TestReplies(t *testing.T) {
	e := &Erratic{faults: faults{large: true}}
	m, _ := serve(t, e, "Www.example.org.", dns.TypeA)
	if len(m.Answer) != 30 || !m.Authoritative || m.Answer[29].String() != "Www.example.org.\t0\tIN\tA\t192.0.2.53" {
		t.Errorf("got %v", m)
	}
	e = new(Erratic)
	if m, _ = serve(t, e, "www.example.org.", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("got %v", m)
	}
	if m, _ = serve(t, e, "www.example.org.", dns.TypeAAAA); len(m.Answer) != 1 || m.Answer[0].String() != "www.example.org.\t0\tIN\tAAAA\t2001:db8::53" {
		t.Errorf("got %v", m)
	}
	if m, rc := serve(t, e, "www.example.org.", dns.TypeMX); m != nil || rc != dns.RcodeServerFailure {
		t.Errorf("got %d, %v", rc, m)
	}
	for name, primary := range map[string]string{"example.org.": "a.example.org.", ".": "a."} {
		m, _ := serve(t, e, name, dns.TypeAXFR)
		first, ok := m.Answer[0].(*dns.SOA)
		if !ok || len(m.Answer) != 6 || m.Answer[5] != m.Answer[0] || first.Serial != 2018050825 || first.Ns != primary {
			t.Errorf("got %v", m)
		}
		if _, err := m.Pack(); err != nil {
			t.Error(err)
		}
	}
	e = &Erratic{faults: faults{truncate: 1}}
	if m, _ = serve(t, e, "example.org.", dns.TypeAXFR); len(m.Answer) != 5 {
		t.Errorf("got %v", m)
	}
}

func TestReadyAndAutoPath(t *testing.T) {
	e := new(Erratic)
	got := ""
	for range 7 {
		got += fmt.Sprint(e.Ready())[:1]
		serve(t, e, "example.org.", dns.TypeMX)
	}
	if got != "fffttff" {
		t.Errorf("ready %s", got)
	}
	if got := e.AutoPath(request.Request{}); !slices.Equal(got, []string{"a.example.org.", "b.example.org.", ""}) {
		t.Errorf("got %q", got)
	}
	if e.ServeWire(t.Context(), nil, nil) != wire.Unpack {
		t.Error("served in the wire lane")
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  faults
		err   string
	}{
		{"erratic", faults{drop: 2}, ""},
		{"erratic {\ndrop\n}", faults{drop: 2}, ""},
		{"erratic {\nlarge\n}", faults{drop: 2, large: true}, ""},
		{"erratic {\ndrop 0\nlarge\n}", faults{large: true}, ""},
		{"erratic {\ndrop 3\ndelay 5 1ms\n}", faults{drop: 3, delay: 5, duration: time.Millisecond}, ""},
		{"erratic {\ndelay\n}", faults{delay: 2, duration: 100 * time.Millisecond}, ""},
		{"erratic {\ndrop\ntruncate\n}", faults{truncate: 2}, ""},
		{"erratic {\ndrop 2\ntruncate\n}", faults{drop: 2, truncate: 2}, ""},
		{"erratic {\ntruncate 0\n}", faults{drop: 2}, ""},

		{"erratic {\ndrop -1\n}", faults{}, `plugin/erratic: Testfile:2 - Error during parsing: illegal amount value given "-1"`},
		{"erratic {\ndelay -1\n}", faults{}, `illegal amount value given "-1"`},
		{"erratic {\ndelay 1 2 4\n}", faults{}, "Wrong argument count"},
		{"erratic {\ndelay 15.a\n}", faults{}, "invalid syntax"},
		{"erratic {\ndelay 3 bla\n}", faults{}, "invalid duration"},
		{"erratic {\ntruncate 15.a\n}", faults{}, "invalid syntax"},
		{"erratic {\nsomething\n}", faults{}, "unknown property 'something'"},
		{"erratic 3", faults{}, `not a zone: "3"`},
		{"erratic " + strings.Repeat("x", 64), faults{}, "not a zone"},
	} {
		e, err := parse(caddy.NewTestController("dns", tc.input))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil || e.faults != tc.want {
			t.Errorf("%q: got %+v, %v, want %+v", tc.input, e, err, tc.want)
		}
	}
	if err := setup(caddy.NewTestController("dns", "erratic")); err != nil {
		t.Error(err)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
