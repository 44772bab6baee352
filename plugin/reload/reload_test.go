package reload

import (
	"bytes"
	"errors"
	"fmt"
	golog "log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func input(text string) caddy.Input {
	return caddy.CaddyfileInput{Contents: []byte(text), Filepath: "Corefile", ServerTypeName: "dns"}
}

// capture redirects the log for the rest of the test.
func capture(t *testing.T) *bytes.Buffer {
	t.Helper()
	out, flags := new(bytes.Buffer), golog.Flags()
	golog.SetOutput(out)
	golog.SetFlags(0)
	t.Cleanup(func() { golog.SetOutput(os.Stderr); golog.SetFlags(flags) })
	return out
}

func mustHash(t *testing.T, in caddy.Input) string {
	t.Helper()
	h, err := hash(in)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The story of a file, look by look: what is there, what happens.
func TestTicks(t *testing.T) {
	const first, second, third, broken = ". {\nwhoami\n}", ". {\nlog\n}", ". {\nerrors\n}", ". {\nno-such-plugin\n}"
	steps := []struct {
		name     string
		text     string // "-" cannot be read
		refuse   bool   // the restart fails
		restart  bool   // is tried
		replaced bool
		log      string
		failures float64
	}{
		{"the same", first, false, false, false, "", 0},
		{"gone", "-", false, false, false, "[WARNING] plugin/reload: Corefile could not be read: no such file\n", 0},
		{"still gone", "-", false, false, false, "", 0},
		{"empty", "", false, false, false, "[WARNING] plugin/reload: Corefile parse failed: there is no server block in it\n", 0},
		{"half a file", ". {\nwhoami\n", false, false, false, "[WARNING] plugin/reload: Corefile parse failed: Corefile:", 0},
		{"a second half file", ". {\nwhoami\n", false, false, false, "[WARNING] plugin/reload: Corefile parse failed: Corefile:", 0},
		{"back again", first, false, false, false, "", 0},
		{"gone again", "-", false, false, false, "[WARNING] plugin/reload: Corefile could not be read: no such file\n", 0},
		{"unknown directive", broken, false, false, false, "[ERROR] plugin/reload: Corefile changed but reload failed: Corefile:2 - Error during parsing: Unknown directive 'no-such-plugin' ('coredns -plugins' lists those of this program)\n", 1},
		{"the same broken one", broken, false, false, false, "", 1},
		{"refused", second, true, true, false, "[ERROR] plugin/reload: Corefile changed but reload failed: port is taken\n", 2},
		{"refused before", second, false, false, false, "", 2},
		{"as it runs", first, false, false, false, "", 2},
		{"tried again after a change", second, true, true, false, "[ERROR] plugin/reload: Corefile changed but reload failed: port is taken\n", 3},
		{"good", third, false, true, true, "", 3},
	}
	var text string
	var refuse, tried bool
	w := &watcher{
		load: func() (caddy.Input, error) {
			if text == "-" {
				return nil, errors.New("no such file")
			}
			return input(text), nil
		},
		restart: func(in caddy.Input) error {
			tried = true
			if string(in.Body()) != text {
				t.Errorf("restarted with %q", in.Body())
			}
			if refuse {
				return errors.New("port is taken")
			}
			return nil
		},
		running: mustHash(t, input(first)), tried: mustHash(t, input(first)), quit: make(chan struct{}),
	}
	before := testutil.ToFloat64(failed)
	for _, s := range steps {
		out := capture(t)
		text, refuse, tried = s.text, s.refuse, false
		if got := w.tick(); got != s.replaced || tried != s.restart {
			t.Errorf("%s: replaced %t, restarted %t", s.name, got, tried)
		}
		if !strings.HasPrefix(out.String(), s.log) || s.log == "" && out.Len() > 0 {
			t.Errorf("%s: logged %q, want %q", s.name, out, s.log)
		}
		if got := testutil.ToFloat64(failed) - before; got != s.failures {
			t.Errorf("%s: %v failures, want %v", s.name, got, s.failures)
		}
	}
}

func TestHash(t *testing.T) {
	dir := t.TempDir()
	part := filepath.Join(dir, "part")
	if err := os.WriteFile(part, []byte("whoami"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZONE", "example.org")
	a := mustHash(t, input("{$ZONE} {\nerrors\nimport "+part+"\n}"))
	if b := mustHash(t, input("{$ZONE}   {\nerrors\nimport "+part+"\n}\n\n# the end")); a != b || len(a) != 128 {
		t.Errorf("white space counts: %s %s", a, b)
	}
	if b := mustHash(t, input("# begin\n{$ZONE} {\nerrors\nimport "+part+"\n}")); a == b {
		t.Error("the place of a token does not count")
	}
	os.WriteFile(part, []byte("log"), 0o600)
	b := mustHash(t, input("{$ZONE} {\nerrors\nimport "+part+"\n}"))
	if a == b {
		t.Error("an imported file does not count")
	}
	t.Setenv("ZONE", "example.net")
	if c := mustHash(t, input("{$ZONE} {\nerrors\nimport "+part+"\n}")); c == b {
		t.Error("the environment does not count")
	}
}

func TestStop(t *testing.T) {
	w := &watcher{load: func() (caddy.Input, error) { return input(". {\nwhoami\n}"), nil }, quit: make(chan struct{})}
	restarted := false
	w.restart = func(caddy.Input) error { restarted = true; return nil }
	ended := make(chan struct{})
	go func() { w.run(time.Hour); close(ended) }()
	w.stop()
	w.stop()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the watcher goes on")
	}
	if w.tick(); restarted {
		t.Error("an instance that is shut down was restarted")
	}
}

func TestRun(t *testing.T) {
	const first, half, whole = ". {\nwhoami\n}", ". {\nlog\n}", ". {\nlog\n}\nexample.org {\nlog\n}"
	texts := []string{first, half, whole} // look by look: the rest was still to be written
	restarted := make(chan string, 1)
	w := &watcher{
		load: func() (caddy.Input, error) {
			text := texts[0]
			texts = texts[min(1, len(texts)-1):]
			return input(text), nil
		},
		restart: func(in caddy.Input) error { restarted <- string(in.Body()); return nil },
		running: mustHash(t, input(first)), quiet: time.Millisecond, quit: make(chan struct{}),
	}
	w.tried = w.running
	ended := make(chan struct{})
	go func() { w.run(time.Millisecond); close(ended) }()
	if got := <-restarted; got != whole {
		t.Errorf("restarted with %q", got)
	}
	<-ended // the next instance has a watcher of its own
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input     string
		low, high time.Duration
		err       string
	}{
		{"reload", 22500 * time.Millisecond, 37500 * time.Millisecond, ""},
		{"reload 10s", 7500 * time.Millisecond, 12500 * time.Millisecond, ""},
		{"reload 10s 2s", 9 * time.Second, 11 * time.Second, ""},
		{"reload 2s 0s", 2 * time.Second, 2 * time.Second, ""},
		{"reload 2s 1h", 1500 * time.Millisecond, 2500 * time.Millisecond, ""},
		{"reload foo", 0, 0, `plugin/reload: Testfile:1 - Error during parsing: time: invalid duration "foo"`},
		{"reload 10s foo", 0, 0, `time: invalid duration "foo"`},
		{"reload 10s 5s foo", 0, 0, "Wrong argument count"},
		{"reload 1s", 0, 0, "interval value must be greater or equal to 2s"},
		{"reload 0s", 0, 0, "interval value must be greater or equal to 2s"},
		{"reload 3s 0.5s", 0, 0, "jitter value must be 0 or greater or equal to 1s"},
		{"reload 3s -1s", 0, 0, "jitter value must be 0 or greater or equal to 1s"},
		{"reload {\nx\n}", 0, 0, "unknown property 'x'"},
	} {
		for range 20 {
			c := caddy.NewTestController("dns", tc.input)
			err := setup(c)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
				}
				break
			}
			if err != nil {
				t.Errorf("%q: %v", tc.input, err)
				break
			}
			if got := c.Get(planKey{}).(*plan).interval; got < tc.low || got > tc.high {
				t.Errorf("%q: interval %s, want %s to %s", tc.input, got, tc.low, tc.high)
			}
		}
	}
}

// actions are what plugins of tests do: caddy lets nobody register one twice, and a test may run once more.
var actions = map[string]caddy.SetupFunc{}

func register(name string, action caddy.SetupFunc) {
	if actions[name] == nil {
		caddy.RegisterPlugin(name, caddy.Plugin{ServerType: "dns", Action: func(c *caddy.Controller) error { return actions[name](c) }})
	}
	actions[name] = action
}

// TestImportChangesMeanwhile has a file that is imported change while the plugins start, which may take them some seconds:
// what runs is what was read before.
func TestImportChangesMeanwhile(t *testing.T) {
	capture(t)
	file := filepath.Join(t.TempDir(), "imported")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	register("starts", func(c *caddy.Controller) error {
		c.OnStartup(func() error { write("starts late"); return nil })
		return nil
	})
	directives, quiet := dnsserver.Directives, dnsserver.Quiet
	dnsserver.Directives, dnsserver.Quiet = []string{pluginName, "starts"}, true
	defer func() { dnsserver.Directives, dnsserver.Quiet = directives, quiet }()
	write("starts early")
	in := input(".:0 {\nreload\nimport " + file + "\n}")
	before := mustHash(t, in)
	i, err := caddy.Start(in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		i.ShutdownCallbacks()
		i.Stop()
	}()
	if got := i.Storage[planKey{}].(*plan).watcher.running; got != before || got == mustHash(t, in) {
		t.Error("what runs is taken for what is in the file now")
	}
}

// A plugin that panics while the next configuration is set up makes the reload fail: the watcher of the one that runs
// must not end, as nothing would be reloaded any more.
func TestPanicIsFailure(t *testing.T) {
	out := capture(t)
	register("panics", func(*caddy.Controller) error { panic("as it is meant to") })
	directives, quiet := dnsserver.Directives, dnsserver.Quiet
	dnsserver.Directives, dnsserver.Quiet = []string{pluginName, "panics"}, true
	defer func() { dnsserver.Directives, dnsserver.Quiet = directives, quiet }()
	i, err := caddy.Start(input(".:0 {\nreload\n}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		i.ShutdownCallbacks()
		i.Stop()
	}()
	w := i.Storage[planKey{}].(*plan).watcher
	w.load, w.quiet = func() (caddy.Input, error) { return input(".:0 {\nreload\npanics\n}"), nil }, 0
	before := testutil.ToFloat64(failed)
	if w.tick() || w.stopped() || testutil.ToFloat64(failed) != before+1 {
		t.Errorf("it is no failure: %s", out)
	}
	const panicked, told = "[PANIC] Restart: as it is meant to\n", "[ERROR] plugin/reload: Corefile changed but reload failed: a plugin panicked\n"
	if got := out.String(); !strings.HasSuffix(got, panicked+told) {
		t.Errorf("logged %q", got)
	}
}

func TestHookIsRegisteredOnce(t *testing.T) {
	registerHook()
	registerHook()
	n := 0
	for _, name := range caddy.ListPlugins()["event_hooks"] {
		if name == pluginName {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d hooks", n)
	}
}

func TestEventsOfOthers(t *testing.T) {
	out := capture(t)
	for _, err := range []error{
		onEvent(caddy.StartupEvent, &caddy.Instance{}),
		onEvent(caddy.InstanceStartupEvent, nil),
		onEvent(caddy.InstanceStartupEvent, &caddy.Instance{}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("logged %q", out)
	}
}

func TestVersionInfo(t *testing.T) {
	first, second, third := new(plan), new(plan), new(plan)
	for _, step := range []struct {
		what string
		do   func()
		want string // the value shown; "" for none
	}{
		{"the first is up", func() { showVersion(first, "one") }, "one"},
		{"the second is up, with another text", func() { showVersion(second, "two") }, "two"},
		{"the first has ended", func() { _ = first.end() }, "two"},
		{"the third is up, with the same text", func() { showVersion(third, "two") }, "two"},
		{"the second has ended", func() { _ = second.end() }, "two"},
		{"the third has ended, what follows has no reload", func() { _ = third.end() }, ""},
		{"the third ends again", func() { _ = third.end() }, ""},
	} {
		step.do()
		want := ""
		if step.want != "" {
			want = fmt.Sprintf(`
# HELP coredns_reload_version_info A metric with a constant '1' value labeled by hash, and value which type of hash generated.
# TYPE coredns_reload_version_info gauge
coredns_reload_version_info{hash="sha512",value=%q} 1
`, step.want)
		}
		if err := testutil.CollectAndCompare(versionInfo, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
