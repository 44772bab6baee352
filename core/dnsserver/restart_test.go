package dnsserver

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/coredns/caddy"
)

// TestReloadsAtOneTime has two reloads of one configuration at a time, as a signal and the directive reload may begin
// them. The second one waits for the first. When that has come to its end, there is nothing to be replaced any more; if it
// failed, there is.
func TestReloadsAtOneTime(t *testing.T) {
	for _, tc := range []struct {
		name          string
		first, second string // what is wrong with it
		serves        string
	}{
		{"both are good", "", "", "first"},
		{"the first one fails", " fails", "", "second"},
		{"both fail", " fails", " fails", "old"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			probed(t)
			old := started(t, ".:0 {\nprobe old\n}")
			tcp, udp := old.Servers()[0].Addr(), old.Servers()[0].LocalAddr()
			starting, goOn := make(chan struct{}, 2), make(chan struct{})
			old.OnRestartFailed = append(old.OnRestartFailed, func() error { note("told"); return nil })
			probing.setup = func(c *caddy.Controller) {
				c.OnStartup(func() error { starting <- struct{}{}; <-goOn; return nil })
			}
			reload := func(text string) <-chan error {
				done := make(chan error, 1)
				go func() {
					_, err := old.Restart(inputOf(".:0 {\nprobe " + text + "\n}"))
					done <- err
				}()
				return done
			}
			first := reload("first" + tc.first)
			<-starting
			second := reload("second" + tc.second)
			select {
			case <-starting:
				t.Error("the second one starts while the first one does")
			case <-time.After(50 * time.Millisecond):
			}
			close(goOn)
			errs := fmt.Sprint(<-first != nil, <-second != nil)
			if want := fmt.Sprint(tc.first != "", tc.serves != "second"); errs != want {
				t.Errorf("failed: %s, want %s", errs, want)
			}
			if got := strings.Count(noted(), "told"); got != strings.Count(tc.first+tc.second, "fails") {
				t.Errorf("plugins are told %d times that a reload failed", got)
			}
			now := caddy.Instances()
			if len(now) != 1 {
				t.Fatalf("%d configurations run", len(now))
			}
			for network, addr := range map[string]net.Addr{"tcp": tcp, "udp": udp} {
				for range 8 { // of several servers each would have its turn
					if got := text(t, network, addr, "www."); got != tc.serves {
						t.Errorf("%s: %s", network, got)
					}
				}
			}
		})
	}
}

// What a reload that fails has opened takes no queries of the next one, whoever holds its configuration; and if nobody else
// does, the process does not.
func TestFailedReloadIsLetGo(t *testing.T) {
	probed(t)
	port := loopback.Taken(t)
	free := loopback.Addr()
	_, good, _ := net.SplitHostPort(free)
	old := started(t, ".:0 {\nprobe old\n}")
	var held []*caddy.Instance
	probing.setup = func(c *caddy.Controller) { held = append(held, Instance(c)) }
	defer func() { probing.setup = nil }()
	if _, err := old.Restart(inputOf(".:0 {\nprobe new\n}\n.:" + good + " {\nprobe one\n}\n.:" + port + " {\nprobe two\n}")); err == nil {
		t.Fatal("it starts")
	}
	expectFree(t, "it failed", free)
	failed := weak.Make(held[0])
	runtime.KeepAlive(held)
	held = nil
	eventually.Holds(t, "it is let go", func() bool {
		runtime.GC()
		return failed.Value() == nil
	})
}

// A reload that fails leaves the level of the log as it was, whoever has set it.
func TestLevelAfterFailedReload(t *testing.T) {
	probed(t)
	old := started(t, ".:0 {\nprobe old\n}")
	defer log.D.Clear()
	for _, level := range []bool{true, false} {
		logDebug(level)
		probing.setup = func(c *caddy.Controller) { GetConfig(c).Debug = !level }
		for _, how := range []string{"bad", "fails"} {
			if _, err := old.Restart(inputOf(".:0 {\nprobe new " + how + "\n}")); err == nil {
				t.Fatal("it starts")
			}
			if got := log.D.Value(); got != level {
				t.Errorf("%s: debug lines: %t, before %t", how, got, level)
			}
		}
	}
	probing.setup = nil
}

// A reload that takes long is told of, and not when it is over.
func TestSlowReload(t *testing.T) {
	usual := longRestart
	t.Cleanup(func() { longRestart = usual })
	probed(t)
	out := logtest.Capture(t)
	i := started(t, ".:0 {\nprobe one\n}")
	const line = "The reload takes long"
	longRestart = time.Hour
	i, err := i.Restart(inputOf(".:0 {\nprobe two\n}"))
	if err != nil || strings.Contains(out.String(), line) {
		t.Fatalf("%v\n%s", err, out)
	}
	longRestart = time.Millisecond
	probing.setup = func(*caddy.Controller) {
		eventually.Holds(t, line, func() bool { return strings.Contains(out.String(), line) })
	}
	if _, err = i.Restart(inputOf(".:0 {\nprobe three\n}")); err != nil {
		t.Fatal(err)
	}
}

// A reload right behind an upgrade waits until the process before has ended: what that has still, such as a network
// interface or a locked file, the next configuration could not have.
func TestReloadBehindUpgrade(t *testing.T) {
	probed(t)
	last := lastGeneration()
	old := started(t, ".:0 {\nprobe old\n}")
	gone := make(chan struct{})
	last().gone = gone
	starting := make(chan struct{}, 1)
	probing.setup = func(*caddy.Controller) { starting <- struct{}{} }
	done := make(chan error, 1)
	go func() {
		_, err := old.Restart(inputOf(".:0 {\nprobe new\n}"))
		done <- err
	}()
	select {
	case <-starting:
		t.Error("it is not waited for")
	case <-time.After(50 * time.Millisecond):
	}
	close(gone)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
