package dnsserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
