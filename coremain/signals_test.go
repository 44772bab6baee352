//go:build !windows

package coremain

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/coredns/caddy"
)

// asProgram is the variable of the environment that makes the test binary the program, with its value as Corefile.
const asProgram = "COREMAIN_TEST_COREFILE"

func TestMain(m *testing.M) {
	if corefile := os.Getenv(asProgram); corefile != "" {
		os.Args = []string{os.Args[0], "-conf", corefile, "-pidfile", corefile + ".pid"}
		registerSlow(filepath.Dir(corefile))
		insistTimes = 2
		Run()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// begin starts the test binary as the program, and returns it with what it writes.
func begin(t *testing.T, corefile string, env ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	program := exec.Command(os.Args[0])
	program.Env = append(append(os.Environ(), asProgram+"="+corefile), env...)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	return program, out
}

// Who has seen the first line of output may send signals: they are handled, and do not just end the process.
func TestSignalsRightAfterTheStart(t *testing.T) {
	corefile := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(corefile, []byte("example.org:0"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		program, out := begin(t, corefile, "GOMAXPROCS=1")
		lines := bufio.NewReader(out)
		first, err := lines.ReadString('\n')
		if err != nil || first != "example.org.:0\n" {
			t.Errorf("the program begins with %q, %v", first, err)
		}
		program.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(lines)
		if err := program.Wait(); err != nil || !strings.Contains(string(rest), "[INFO] SIGTERM: Shutting down servers then terminating") {
			t.Fatalf("the program ended with %v, and wrote %q", err, rest)
		}
	}
}

// The server goes on when nobody reads what it logs any more.
func TestReaderOfTheLogEnds(t *testing.T) {
	corefile := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(corefile, []byte("example.org:0"), 0o644); err != nil {
		t.Fatal(err)
	}
	program, out := begin(t, corefile)
	lines := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, runtime.GOOS+"/"); { // of the version's lines the last one: it serves
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%v after %q", err, line)
		}
	}
	out.(io.Closer).Close()
	program.Process.Signal(syscall.SIGTERM) // of which a line tells
	if err := program.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// registerSlow registers a directive whose start says so, and goes on when there is a file "go" in a folder. With an
// argument the end takes some seconds, and there are goroutines whose stacks are more than mostStacks.
func registerSlow(folder string) {
	dnsserver.Directives = append([]string{"slow"}, dnsserver.Directives...)
	caddy.RegisterPlugin("slow", caddy.Plugin{ServerType: serverType, Action: func(c *caddy.Controller) error {
		if c.Next(); c.NextArg() {
			for range 8000 {
				go deep(50)
			}
			c.OnFinalShutdown(func() error { time.Sleep(2 * insistEvery * time.Duration(insistTimes)); return nil })
		}
		c.OnStartup(func() error {
			fmt.Println("starting")
			for {
				if _, err := os.Stat(filepath.Join(folder, "go")); err == nil {
					return nil
				}
				time.Sleep(time.Millisecond)
			}
		})
		return nil
	}})
}

// What asks for a reload, or an upgrade, while the process starts gets it when that has started. The end does not wait.
func TestSignalsWhileStarting(t *testing.T) {
	for _, signals := range [][]syscall.Signal{
		{syscall.SIGUSR1}, {syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGUSR1}, {syscall.SIGUSR2}, {syscall.SIGTERM}, {syscall.SIGUSR1, syscall.SIGINT},
	} {
		folder := t.TempDir()
		corefile := filepath.Join(folder, "Corefile")
		if err := os.WriteFile(corefile, []byte("example.org:0 {\n slow\n}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		program, out := begin(t, corefile)
		defer program.Process.Kill()
		lines := bufio.NewReader(out)
		next := func() string {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%v: %v after %q", signals, err, line)
			}
			return strings.TrimSpace(line)
		}
		if line := next(); line != "starting" {
			t.Fatalf("begins with %q", line)
		}
		for _, s := range signals {
			program.Process.Signal(s)
		}
		last, want := signals[len(signals)-1], ""
		switch last {
		case syscall.SIGUSR1:
			want = "[INFO] SIGUSR1: Reloading"
		case syscall.SIGUSR2:
			want = "[INFO] SIGUSR2: Upgrading"
		default:
			if rest, _ := io.ReadAll(lines); program.Wait() != nil || strings.Contains(string(rest), "example.org") {
				t.Errorf("%v: %v, %q", signals, program.ProcessState, rest)
			}
			continue
		}
		time.Sleep(50 * time.Millisecond) // nothing happens
		if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if line := next(); line != "example.org.:0" {
			t.Fatalf("%v: %q, before the process serves", signals, line)
		}
		for line := next(); line != want; line = next() {
			if strings.HasPrefix(line, "[") {
				t.Errorf("%v: %q", signals, line)
			}
		}
		end := map[syscall.Signal]string{syscall.SIGUSR1: "[INFO] Reloading complete", syscall.SIGUSR2: "[INFO] Upgrade finished"}[last]
		for line := next(); line != end; line = next() {
			if strings.HasPrefix(line, "[ERROR]") {
				t.Errorf("%v: %q", signals, line)
			}
		}
		if last == syscall.SIGUSR1 {
			program.Process.Signal(syscall.SIGTERM)
		}
		if state, err := program.Process.Wait(); err != nil || !state.Success() {
			t.Errorf("%v: ended with %v, %v", signals, state, err)
		}
		if last == syscall.SIGUSR2 { // the successor goes on
			endSuccessor(t, corefile, program.Process.Pid)
		}
		io.Copy(io.Discard, lines) // until all have ended
	}
}

// slowFiles are a Corefile whose plugin waits at its start, and the file that it waits for, which is there.
func slowFiles(t *testing.T) (corefile, starts string) {
	t.Helper()
	folder := t.TempDir()
	corefile, starts = filepath.Join(folder, "Corefile"), filepath.Join(folder, "go")
	for file, text := range map[string]string{corefile: "example.org:0 {\n slow\n}\n", starts: ""} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return corefile, starts
}

// The end is not forgotten when it is asked for during a reload, and another reload waits already.
func TestEndDuringReload(t *testing.T) {
	corefile, starts := slowFiles(t)
	program, out := begin(t, corefile)
	stuck := time.AfterFunc(20*time.Second, func() { program.Process.Kill() })
	defer stuck.Stop()
	lines := bufio.NewScanner(out)
	until := func(text string) {
		for lines.Scan() && !strings.Contains(lines.Text(), text) {
		}
	}
	until("compatible with")
	os.Remove(starts)
	program.Process.Signal(syscall.SIGUSR1)
	until("starting")
	program.Process.Signal(syscall.SIGUSR1)
	time.Sleep(50 * time.Millisecond) // this one waits, and the next one finds no place
	program.Process.Signal(syscall.SIGTERM)
	time.Sleep(50 * time.Millisecond)
	if err := os.WriteFile(starts, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until("no such line")
	if err := program.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// An upgrade is not forgotten when it is asked for during a reload, and another reload waits already. Each reload comes
// once.
func TestUpgradeDuringReload(t *testing.T) {
	corefile, starts := slowFiles(t)
	program, out := begin(t, corefile)
	stuck := time.AfterFunc(30*time.Second, func() { program.Process.Kill() })
	defer stuck.Stop()
	lines := bufio.NewScanner(out)
	reloads, upgrades := 0, 0
	until := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), "SIGUSR1: Reloading") {
				reloads++
			}
			if strings.Contains(lines.Text(), "SIGUSR2: Upgrading") {
				upgrades++
			}
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Errorf("no %q", text)
	}
	until("compatible with")
	os.Remove(starts)
	program.Process.Signal(syscall.SIGUSR1)
	until("starting")
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGUSR2} { // one waits, and the others find no place
		program.Process.Signal(s)
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(3 * askAgainEvery)
	if err := os.WriteFile(starts, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until("Upgrade finished")
	if state, err := program.Process.Wait(); err != nil || !state.Success() || reloads != 2 || upgrades != 1 {
		t.Errorf("%d reloads and %d upgrades; ended with %v, %v", reloads, upgrades, state, err)
	}
	endSuccessor(t, corefile, program.Process.Pid)
	io.Copy(io.Discard, out) // until all have ended
}

// endSuccessor ends the process that has taken the place of the one with pid.
func endSuccessor(t *testing.T, corefile string, pid int) {
	t.Helper()
	next := pid
	for deadline := time.Now().Add(20 * time.Second); next == pid || next == 0; { // it writes its number a little later
		text, _ := os.ReadFile(corefile + ".pid")
		time.Sleep(time.Millisecond)
		if next, _ = strconv.Atoi(strings.TrimSpace(string(text))); time.Now().After(deadline) {
			t.Fatalf("no successor: %q", text)
		}
	}
	if err := syscall.Kill(next, syscall.SIGTERM); err != nil {
		t.Errorf("no successor %d: %v", next, err)
	}
}

// deep waits for ever, with a stack of n frames.
//
//go:noinline
func deep(n int) {
	if n == 0 {
		select {}
	}
	deep(n - 1)
}

// The end does not wait for a reload that does not come to its end.
func TestEndDuringReloadThatHangs(t *testing.T) {
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT} {
		corefile, starts := slowFiles(t)
		program, out := begin(t, corefile)
		stuck := time.AfterFunc(20*time.Second, func() { program.Process.Kill() })
		defer stuck.Stop()
		lines := bufio.NewScanner(out)
		var all strings.Builder
		until := func(text string) {
			for lines.Scan() && !strings.Contains(lines.Text(), text) {
				fmt.Fprintln(&all, lines.Text())
			}
		}
		until("compatible with")
		os.Remove(starts)
		program.Process.Signal(syscall.SIGUSR1)
		until("starting")
		program.Process.Signal(by)
		until("no such line")
		if err := program.Wait(); err != nil || !strings.Contains(all.String(), "The process ends in the middle of a reload") {
			t.Errorf("%v: ended with %v\n%s", by, err, &all)
		}
	}
}

// An end that takes long, by a plugin, is not asked for in another way.
func TestEndThatTakesLong(t *testing.T) {
	folder := t.TempDir()
	corefile := filepath.Join(folder, "Corefile")
	if err := os.WriteFile(corefile, []byte("example.org:0 {\n slow end\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	program, out := begin(t, corefile)
	stuck := time.AfterFunc(20*time.Second, func() { program.Process.Kill() })
	defer stuck.Stop()
	lines := bufio.NewReader(out)
	for line := ""; line != "example.org.:0\n"; {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	program.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(lines)
	if err := program.Wait(); err != nil || strings.Contains(string(rest), "SIGINT") || strings.Contains(string(rest), "in the middle of") {
		t.Errorf("ended with %v\n%s", err, rest)
	}
}

// When Caddy asks for signals is known by the names of functions of its own, among whatever goroutines there are.
func TestAwaitCaddy(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for range 10000 { // their stacks are more than a megabyte
		go func() { <-over }()
	}
	caddy.TrapSignals()
	for range 20 { // on a busy machine it may take a while
		if awaitCaddy() {
			return
		}
	}
	t.Error("no goroutine in which Caddy waits for signals")
}
