package ready

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
)

// slow is a plugin that gets ready, and may cease to be.
type slow struct {
	test.Handler
	name  string
	mu    sync.Mutex
	ready bool
	asked int
}

func (s *slow) Name() string { return s.name }
func (s *slow) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.ready
}
func (s *slow) set(ready bool) { s.ready = ready }

func ask(m *monitor) (int, string) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestMonitor(t *testing.T) {
	out := logtest.Capture(t)

	// Two plugins of one name in two blocks are asked both.
	b1, b2, a := &slow{name: "b"}, &slow{name: "b"}, &slow{name: "a"}
	for _, continuous := range []bool{false, true} {
		for _, s := range []*slow{b1, b2, a} {
			s.ready, s.asked = false, 0
		}
		m := &monitor{continuous: continuous}
		m.watch([]plugin.Handler{b1, test.NextHandler(0, nil)}, nil)
		m.watch([]plugin.Handler{b2, a}, nil)
		steps := []struct {
			change func()
			want   string
		}{
			{func() {}, "a,b"},
			{func() { b1.set(true); a.set(true) }, "b"},
			{func() { b2.set(true) }, "OK"},
			{func() { a.set(false) }, map[bool]string{false: "OK", true: "a"}[continuous]},
		}
		for i, step := range steps {
			step.change()
			out.Take()
			code, body := ask(m)
			wantCode := http.StatusServiceUnavailable
			if step.want == "OK" {
				wantCode = http.StatusOK
			}
			if code != wantCode || body != step.want {
				t.Errorf("continuous %t, step %d: got %d %q, want %q", continuous, i, code, body, step.want)
			}
			logged := strings.Contains(out.String(), `[INFO] plugin/ready: Plugins not ready: "`+step.want+`"`)
			if logged != (step.want != "OK") {
				t.Errorf("continuous %t, step %d: logged %q", continuous, i, out.String())
			}
		}
		if want := map[bool]int{false: 2, true: 4}[continuous]; b1.asked != want {
			t.Errorf("continuous %t: asked %d times, want %d", continuous, b1.asked, want)
		}
	}
	if code, body := ask(new(monitor)); code != http.StatusOK || body != "OK" {
		t.Errorf("nobody to ask: got %d %q", code, body)
	}
}

// All is ready when the servers have their sockets, too: the endpoint is there a moment before them.
func TestMonitorWaitsForSockets(t *testing.T) {
	sockets := make(chan struct{})
	m, told := &monitor{listens: sockets}, make(chan int)
	go func() {
		code, _ := ask(m)
		told <- code
	}()
	select {
	case <-told:
		t.Fatal("ready without sockets")
	case <-time.After(20 * time.Millisecond):
	}
	close(sockets)
	if code := <-told; code != http.StatusOK {
		t.Errorf("got %d", code)
	}
	began := time.Now()
	if code, _ := ask(&monitor{listens: make(chan struct{})}); code != http.StatusOK || time.Since(began) < patience {
		t.Errorf("got %d after %v for sockets that never come", code, time.Since(began))
	}
}

func TestMonitorFromManyGoroutines(t *testing.T) {
	logtest.Capture(t)
	m := new(monitor)
	s := &slow{name: "s"}
	m.watch([]plugin.Handler{s}, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				m.waiting()
			}
		})
	}
	wg.Wait()
	s.set(true)
	if names := m.waiting(); len(names) > 0 {
		t.Errorf("got %q", names)
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  settings
		err   string
	}{
		{"ready", settings{addr: ":8181"}, ""},
		{"ready localhost:1234", settings{addr: "localhost:1234"}, ""},
		{"ready {\nmonitor until-ready\n}", settings{addr: ":8181"}, ""},
		{"ready localhost:1234 {\nmonitor continuously\n}", settings{addr: "localhost:1234", continuous: true}, ""},
		{"ready\nready", settings{}, "this plugin can only be used once per Server Block: 'ready' stands at Testfile:1 already"},
		{"ready foo", settings{}, "address foo: missing port in address"},
		{"ready :nosuch", settings{}, `invalid port "nosuch" in ":nosuch": must be a number from 0 to 65535`},
		{"ready localhost:1234 b", settings{}, "Wrong argument count"},
		{"ready {\nmonitor 404\n}", settings{}, "Testfile:2 - Error during parsing: monitor type '404' not supported"},
		{"ready {\nmonitor\n}", settings{}, "Wrong argument count"},
		{"ready {\nmonitro continuously\n}", settings{}, "Testfile:2 - Error during parsing: unknown property 'monitro'"},
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
}

func TestBlocksShareAMonitor(t *testing.T) {
	c := caddy.NewTestController("dns", "ready {\nmonitor continuously\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	m := c.Get(monitorKey{}).(*monitor)
	if !m.continuous {
		t.Error("not continuous")
	}
	m.watched = []watched{{name: "x"}}
	c.Dispenser = caddy.NewTestController("dns", "ready").Dispenser
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	if again := c.Get(monitorKey{}).(*monitor); again != m || again.continuous {
		t.Errorf("got %+v", again)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
