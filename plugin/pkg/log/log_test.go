package log_test

import (
	"bytes"
	"errors"
	golog "log"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// capture redirects Go's logger to a buffer without timestamps for the rest of the test.
func capture(t *testing.T) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	out, flags := golog.Writer(), golog.Flags()
	golog.SetOutput(&b)
	golog.SetFlags(0)
	t.Cleanup(func() {
		golog.SetOutput(out)
		golog.SetFlags(flags)
	})
	return &b
}

// debugging turns the debug switch for the rest of the test.
func debugging(t *testing.T, on bool) {
	t.Helper()
	was := log.D.Value()
	turn := func(on bool) {
		if on {
			log.D.Set()
		} else {
			log.D.Clear()
		}
	}
	turn(on)
	t.Cleanup(func() { turn(was) })
}

func TestLines(t *testing.T) {
	p := log.NewWithPlugin("example")
	for _, tc := range []struct {
		name  string
		write func()
		want  string
	}{
		{"core debug", func() { log.Debug("a", 1, 2) }, "[DEBUG] a1 2\n"},
		{"core debugf", func() { log.Debugf("%d%%", 1) }, "[DEBUG] 1%\n"},
		{"core info", func() { log.Info("a") }, "[INFO] a\n"},
		{"core infof", func() { log.Infof("%q", "a") }, "[INFO] \"a\"\n"},
		{"core warning", func() { log.Warning("a") }, "[WARNING] a\n"},
		{"core warningf", func() { log.Warningf("%d", 1) }, "[WARNING] 1\n"},
		{"core error", func() { log.Error(errors.New("a")) }, "[ERROR] a\n"},
		{"core errorf", func() { log.Errorf("%d", 1) }, "[ERROR] 1\n"},
		{"debug", func() { p.Debug("a", 1, 2) }, "[DEBUG] plugin/example: a1 2\n"},
		{"debugf", func() { p.Debugf("%d%%", 1) }, "[DEBUG] plugin/example: 1%\n"},
		{"info", func() { p.Info("a") }, "[INFO] plugin/example: a\n"},
		{"infof", func() { p.Infof("%q", "a") }, "[INFO] plugin/example: \"a\"\n"},
		{"warning", func() { p.Warning("a") }, "[WARNING] plugin/example: a\n"},
		{"warningf", func() { p.Warningf("%d", 1) }, "[WARNING] plugin/example: 1\n"},
		{"error", func() { p.Error(errors.New("a")) }, "[ERROR] plugin/example: a\n"},
		{"errorf", func() { p.Errorf("%d", 1) }, "[ERROR] plugin/example: 1\n"},
		{"verb in the name", func() { log.NewWithPlugin("%d").Info("100%") }, "[INFO] plugin/%d: 100%\n"},
		{"zero", func() { log.P{}.Info("a") }, "[INFO] a\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			debugging(t, true)
			out := capture(t)
			tc.write()
			if got := out.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// loud fails the test when it is formatted.
type loud struct{ t *testing.T }

func (l loud) String() string {
	l.t.Error("the arguments of a line that is not written were formatted")
	return ""
}

func TestDebugOffLooksAtNothing(t *testing.T) {
	debugging(t, false)
	out := capture(t)
	l := listen(t, "quiet")
	p := log.NewWithPlugin("example")

	log.Debug(loud{t})
	log.Debugf("%s", loud{t})
	p.Debug(loud{t})
	p.Debugf("%s", loud{t})
	if out.Len() > 0 || len(l.lines) > 0 {
		t.Errorf("wrote %q, told %q", out, l.lines)
	}
}

func TestSwitch(t *testing.T) {
	debugging(t, false)
	if log.D.Value() {
		t.Error("cleared, but on")
	}
	log.D.Set()
	if !log.D.Value() {
		t.Error("set, but off")
	}
}

func TestDiscard(t *testing.T) {
	out := capture(t)
	log.Discard()
	log.Error("a")
	log.NewWithPlugin("example").Error("a")
	if out.Len() > 0 {
		t.Errorf("wrote %q", out)
	}
}

func TestFileAndLineAreTheCallers(t *testing.T) {
	out := capture(t)
	golog.SetFlags(golog.Lshortfile)
	log.Info("core")
	log.NewWithPlugin("example").Infof("plugin")
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "log_test.go:") {
			t.Errorf("got %q, want a line of this file", line)
		}
	}
}

// buffered is an output that keeps what it is given until it is flushed.
type buffered struct{ bytes.Buffer }

func (b *buffered) Flush() error {
	_, err := b.WriteTo(os.Stdout)
	return err
}

// TestFatal runs itself as a child, since the functions under test end the process.
func TestFatal(t *testing.T) {
	calls := map[string]func(){
		"core":    func() { log.Fatal("over ", 1) },
		"coref":   func() { log.Fatalf("over %d", 1) },
		"plugin":  func() { log.NewWithPlugin("example").Fatal("over ", 1) },
		"pluginf": func() { log.NewWithPlugin("example").Fatalf("over %d", 1) },
	}
	if call, ok := calls[os.Getenv("LOG_TEST_FATAL")]; ok {
		golog.SetFlags(0)
		golog.SetOutput(new(buffered))
		call()
		os.Exit(7) // not reached
	}
	for name, want := range map[string]string{
		"core":    "[FATAL] over 1\n",
		"coref":   "[FATAL] over 1\n",
		"plugin":  "[FATAL] plugin/example: over 1\n",
		"pluginf": "[FATAL] plugin/example: over 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFatal$")
			cmd.Env = append(os.Environ(), "LOG_TEST_FATAL="+name)
			out, err := cmd.Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("got %v, want exit status 1", err)
			}
			if string(out) != want {
				t.Errorf("got %q, want %q", out, want)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	out := capture(t)
	p := log.NewWithPlugin("example")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				p.Info("line")
			}
		})
		wg.Go(func() {
			for range 20 {
				l := &silent{name: "concurrent"}
				_ = log.RegisterListener(l)
				_ = log.DeregisterListener(l)
			}
		})
	}
	wg.Wait()
	if got := strings.Count(out.String(), "[INFO] plugin/example: line\n"); got != 400 {
		t.Errorf("got %d whole lines, want 400", got)
	}
}

// A filtered-out line costs no more than what the caller boxes: nothing for constants and small numbers.
func TestDebugOffDoesNotAllocate(t *testing.T) {
	debugging(t, false)
	p := log.NewWithPlugin("example")
	if n := testing.AllocsPerRun(100, func() { p.Debugf("%s %d", "constant", 7) }); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkDebugOff(b *testing.B) {
	log.D.Clear()
	p := log.NewWithPlugin("example")
	name := strings.Repeat("example.", 2)
	b.ReportAllocs()
	for b.Loop() {
		p.Debugf("%s %d", name, 7)
	}
}

func BenchmarkInfo(b *testing.B) {
	out := golog.Writer()
	golog.SetOutput(new(counter))
	b.Cleanup(func() { golog.SetOutput(out) })
	p := log.NewWithPlugin("example")
	b.ReportAllocs()
	for b.Loop() {
		p.Infof("%s %d", "example.org.", 7)
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
