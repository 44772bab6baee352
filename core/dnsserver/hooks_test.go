package dnsserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/internal/caddystate"

	"github.com/coredns/caddy"
	_ "github.com/coredns/caddy/onevent"
)

// Commands are those of the configuration that runs, however many there have been before, and however others have failed.
func TestCommandsOfReloads(t *testing.T) {
	probed(t)
	dir := t.TempDir()
	script, file := filepath.Join(dir, "script"), filepath.Join(dir, "ran")
	if err := os.WriteFile(script, []byte("echo $1 >> "+file), 0o600); err != nil {
		t.Fatal(err)
	}
	corefile := func(probe, command string) string {
		return fmt.Sprintf(".:0 {\nprobe %s\non startup sh %s %s\n}", probe, script, command)
	}
	expect := func(want string) {
		t.Helper()
		got, _ := os.ReadFile(file)
		ran := strings.Fields(string(got))
		slices.Sort(ran) // they run in any order
		if s := strings.Join(ran, " "); s != want {
			t.Errorf("%q ran, want %q", s, want)
		}
		os.Remove(file)
	}
	i := started(t, corefile("a", "one"))
	expect("one")
	started(t, corefile("b", "beside"))
	expect("beside one")
	for range 3 {
		var err error
		if i, err = i.Restart(inputOf(corefile("a", "two"))); err != nil {
			t.Fatal(err)
		}
		expect("beside two")
	}
	for _, probe := range []string{"a bad", "a fails"} {
		if _, err := i.Restart(inputOf(corefile(probe, "three"))); err == nil {
			t.Fatal(probe)
		}
	}
	expect("")
	caddy.EmitEvent(caddy.InstanceStartupEvent, nil)
	expect("beside two")
}

// A signal for a reload takes away all hooks that there are, also while another reload is under way. Those of the
// configuration that this one starts are there again.
func TestCommandsAfterTwoReloads(t *testing.T) {
	probed(t)
	ran := filepath.Join(t.TempDir(), "ran")
	corefile := func(probe, more string) string {
		return fmt.Sprintf(".:0 {\nprobe %s\non startup touch %s%s\n}", probe, ran, more)
	}
	i := started(t, corefile("one", "1"))
	probing.setup = func(c *caddy.Controller) {
		c.OnStartup(func() error {
			caddystate.EventHooks.Clear() // as caddy does
			return nil
		})
	}
	defer func() { probing.setup = nil }()
	i, err := i.Restart(inputOf(corefile("two", "2")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran + "2"); err != nil {
		t.Error(err)
	}
	os.Remove(ran + "1")
	os.Remove(ran + "2")
	probing.setup = nil
	if _, err := i.Restart(inputOf(corefile("three fails", "3"))); err == nil {
		t.Fatal("it starts")
	}
	caddy.EmitEvent(caddy.InstanceStartupEvent, nil)
	for name, want := range map[string]bool{"1": false, "2": true, "3": false} {
		if _, err := os.Stat(ran + name); (err == nil) != want {
			t.Errorf("the command of %s: %v", name, err)
		}
	}
}
