package log_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// silent is a listener that does nothing, to be embedded.
type silent struct{ name string }

func (s *silent) Name() string                  { return s.name }
func (*silent) Debug(string, ...any)            {}
func (*silent) Debugf(string, string, ...any)   {}
func (*silent) Info(string, ...any)             {}
func (*silent) Infof(string, string, ...any)    {}
func (*silent) Warning(string, ...any)          {}
func (*silent) Warningf(string, string, ...any) {}
func (*silent) Error(string, ...any)            {}
func (*silent) Errorf(string, string, ...any)   {}
func (*silent) Fatal(string, ...any)            {}
func (*silent) Fatalf(string, string, ...any)   {}

// keeper is a listener that keeps what it is told.
type keeper struct {
	silent
	lines []string
}

func (k *keeper) keep(level, plugin, text string) {
	k.lines = append(k.lines, level+"|"+plugin+"|"+text)
}

func (k *keeper) Debug(p string, v ...any)   { k.keep("debug", p, fmt.Sprint(v...)) }
func (k *keeper) Info(p string, v ...any)    { k.keep("info", p, fmt.Sprint(v...)) }
func (k *keeper) Warning(p string, v ...any) { k.keep("warning", p, fmt.Sprint(v...)) }
func (k *keeper) Error(p string, v ...any)   { k.keep("error", p, fmt.Sprint(v...)) }

func (k *keeper) Debugf(p, f string, v ...any)   { k.keep("debugf", p, fmt.Sprintf(f, v...)) }
func (k *keeper) Infof(p, f string, v ...any)    { k.keep("infof", p, fmt.Sprintf(f, v...)) }
func (k *keeper) Warningf(p, f string, v ...any) { k.keep("warningf", p, fmt.Sprintf(f, v...)) }
func (k *keeper) Errorf(p, f string, v ...any)   { k.keep("errorf", p, fmt.Sprintf(f, v...)) }

// listen registers a keeper for the rest of the test.
func listen(t *testing.T, name string) *keeper {
	t.Helper()
	k := &keeper{silent: silent{name}}
	if err := log.RegisterListener(k); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.DeregisterListener(k) })
	return k
}

func TestListenerIsToldPluginLines(t *testing.T) {
	capture(t)
	debugging(t, true)
	k := listen(t, "one")
	p := log.NewWithPlugin("example")

	log.Error("of the core, not of a plugin")
	p.Debug("a", 1)
	p.Debugf("a%d", 2)
	p.Info("a", 3)
	p.Infof("a%d", 4)
	p.Warning("a", 5)
	p.Warningf("a%d", 6)
	p.Error("a", 7)
	p.Errorf("a%d", 8)

	want := []string{
		"debug|plugin/example: |a1", "debugf|plugin/example: |a2",
		"info|plugin/example: |a3", "infof|plugin/example: |a4",
		"warning|plugin/example: |a5", "warningf|plugin/example: |a6",
		"error|plugin/example: |a7", "errorf|plugin/example: |a8",
	}
	if !slices.Equal(k.lines, want) {
		t.Errorf("got  %q\nwant %q", k.lines, want)
	}
}

// peeker notes what had been written when it was told.
type peeker struct {
	silent
	out  fmt.Stringer
	seen string
}

func (p *peeker) Info(string, ...any) { p.seen = p.out.String() }

func TestListenerIsToldBeforeTheLineIsWritten(t *testing.T) {
	out := capture(t)
	l := &peeker{silent: silent{"peeker"}, out: out, seen: "not told"}
	if err := log.RegisterListener(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.DeregisterListener(l) })

	log.NewWithPlugin("example").Info("a")
	if l.seen != "" || !strings.Contains(out.String(), "a") {
		t.Errorf("when told, %q was written; at last %q", l.seen, out)
	}
}

func TestListenersAreKnownByName(t *testing.T) {
	capture(t)
	first, other := listen(t, "name"), listen(t, "other")
	p := log.NewWithPlugin("example")
	p.Info(1)

	second := listen(t, "name")
	p.Info(2)

	// Any listener of the name will do to remove it.
	if err := log.DeregisterListener(&silent{name: "name"}); err != nil {
		t.Fatal(err)
	}
	p.Info(3)

	for _, tc := range []struct {
		k    *keeper
		want int
	}{{first, 1}, {second, 1}, {other, 3}} {
		if len(tc.k.lines) != tc.want {
			t.Errorf("%s was told %q, want %d lines", tc.k.name, tc.k.lines, tc.want)
		}
	}
}

func TestNoListener(t *testing.T) {
	if log.RegisterListener(nil) == nil || log.DeregisterListener(nil) == nil {
		t.Error("nil was taken for a listener")
	}
	if err := log.DeregisterListener(&silent{name: "never registered"}); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}
