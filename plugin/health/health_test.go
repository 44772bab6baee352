package health

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  settings
		err   string
	}{
		{"health", settings{addr: ":8080"}, ""},
		{"health localhost:1234", settings{addr: "localhost:1234"}, ""},
		{"health localhost:1234 {\nlameduck 4s\n}", settings{addr: "localhost:1234", lameduck: 4 * time.Second}, ""},
		{"health {\nlameduck 4s\nlameduck 5s\n}", settings{addr: ":8080", lameduck: 5 * time.Second}, ""},
		{"health foo", settings{}, "plugin/health: Testfile:1 - Error during parsing: address foo: missing port in address"},
		{"health :nosuch", settings{}, `invalid port "nosuch" in ":nosuch": must be a number from 0 to 65535`},
		{"health a b", settings{}, "Wrong argument count or unexpected line ending after 'b'"},
		{"health {\nlameduck x\n}", settings{}, `unable to parse lameduck duration value: 'x' : time: invalid duration "x": must be a duration such as 5s`},
		{"health {\nlameduck\n}", settings{}, "Wrong argument count"},
		{"health {\nlamedudk 4\n}", settings{}, "Testfile:2 - Error during parsing: unknown property 'lamedudk'"},
	} {
		s := settings{addr: defaultAddr}
		err := directive.Parse(caddy.NewTestController("dns", tc.input), &s)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil || s != tc.want {
			t.Errorf("%q: got %+v, %v", tc.input, s, err)
		}
	}
	if setup(caddy.NewTestController("dns", "health foo")) == nil {
		t.Error("setup: no error")
	}
}

func TestAlive(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		w := httptest.NewRecorder()
		alive(w, httptest.NewRequest(method, path, nil))
		if w.Code != http.StatusOK || w.Body.String() != "OK" {
			t.Errorf("%s: got %d %q", method, w.Code, w.Body)
		}
	}
}

func TestLameducksOverlap(t *testing.T) {
	logtest.Capture(t)
	d := new(lameduck)
	begin := time.Now()
	for _, wait := range []time.Duration{750 * time.Millisecond, time.Second, 0, 250 * time.Millisecond} {
		d.wait(wait)
	}
	if took := time.Since(begin); took < time.Second || took >= 2*time.Second {
		t.Errorf("all took %s, want 1s, and not 2s", took)
	}
}

func TestInstanceHasOneLameduckAndOneCheckForAnAddress(t *testing.T) {
	c := caddy.NewTestController("dns", "health :0")
	if one, two := instanceDuck(c), instanceDuck(c); one != two {
		t.Error("two ducks")
	}
	if err := setup(c); err != nil || c.Get(checkedKey{":0"}) == nil {
		t.Errorf("no check (%v)", err)
	}
}

func TestProbeURL(t *testing.T) {
	for _, tc := range []struct{ configured, actual, want string }{
		{":8080", "[::]:8080", "http://localhost:8080/health"},
		{":0", "[::]:4711", "http://localhost:4711/health"},
		{"192.0.2.1:80", "192.0.2.1:80", "http://192.0.2.1:80/health"},
		{"[2001:db8::1]:80", "[2001:db8::1]:80", "http://[2001:db8::1]:80/health"},
		{"[fe80::1%lo]:80", "[fe80::1%lo]:80", "http://[fe80::1%25lo]:80/health"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", tc.actual)
		if err != nil {
			t.Fatal(err)
		}
		if got := probeURL(tc.configured, addr); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

func observed(t *testing.T, h prometheus.Histogram) uint64 {
	t.Helper()
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.Histogram.GetSampleCount()
}

func TestCheck(t *testing.T) {
	out := logtest.Capture(t)
	pause := time.Duration(0)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(pause)
		io.WriteString(w, "OK")
	}))
	defer srv.Close()
	before := observed(t, HealthDuration)
	check(t.Context(), srv.Client(), srv.URL)
	if got := observed(t, HealthDuration) - before; got != 1 || out.String() != "" {
		t.Errorf("observed %d, logged %q", got, out)
	}
	pause = slow + 50*time.Millisecond
	check(t.Context(), srv.Client(), srv.URL)
	if want := `[WARNING] plugin/health: Local health request to "` + srv.URL + `" took more than 1s: 1.`; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q, want %q", out, want)
	}
	failures := testutil.ToFloat64(HealthFailures)
	check(t.Context(), srv.Client(), "http://127.0.0.1:1/health")
	if got := testutil.ToFloat64(HealthFailures) - failures; got != 1 || !strings.Contains(out.String(), `request to "http://127.0.0.1:1/health" failed: `) {
		t.Errorf("counted %v, logged %q", got, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(ctx, srv.Client(), "http://127.0.0.1:1/health") // a check that is called off is no failure
	if got := testutil.ToFloat64(HealthFailures) - failures; got != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestSelfCheck(t *testing.T) {
	asked := make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	defer srv.Close()
	s := new(selfCheck)
	s.start(srv.URL)
	select {
	case <-asked:
	case <-time.After(5 * time.Second):
		t.Error("nobody asks")
	}
	s.stop()
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
