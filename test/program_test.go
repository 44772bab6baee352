//go:build unix

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// asProgram is the variable of the environment that makes the test binary the program; its value is the folder of its Corefile.
const asProgram = "DNS_TEST_PROGRAM"

// processors is the file beside the Corefile that says how many of them the program has, if not all.
const processors = "processors"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asProgram); dir != "" {
		if text, err := os.ReadFile(filepath.Join(dir, processors)); err == nil {
			n, _ := strconv.Atoi(string(text))
			runtime.GOMAXPROCS(n)
		}
		os.Args = []string{os.Args[0], "-conf", filepath.Join(dir, "Corefile"), "-pidfile", filepath.Join(dir, "pid")}
		coremain.Run()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is the server as a process of its own.
type program struct {
	dir string
	out *logtest.Output
	pid int
	cmd *exec.Cmd // nil for one that another program has begun
}

// runProgram starts the program with the Corefile in dir, and returns when it serves. It ends with the test.
func runProgram(t *testing.T, dir string) *program {
	t.Helper()
	return runCommand(t, dir, exec.Command(os.Args[0]))
}

// runCommand is runProgram by a command that becomes the program.
func runCommand(t *testing.T, dir string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{dir: dir, out: new(logtest.Output), cmd: cmd}
	os.Remove(filepath.Join(dir, "pid"))
	p.cmd.Env = append(append(os.Environ(), asProgram+"="+dir), p.cmd.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = p.cmd.Process.Pid
	t.Cleanup(func() { syscall.Kill(p.pid, syscall.SIGKILL) })
	p.await(t, fmt.Sprint(p.pid))
	return p
}

// await waits until the program with that process id has written it, which it does when it serves.
func (p *program) await(t *testing.T, pid string) {
	t.Helper()
	eventually.Holds(t, "the program serves: "+p.out.String(), func() bool {
		text, _ := os.ReadFile(filepath.Join(p.dir, "pid"))
		return strings.TrimSpace(string(text)) == pid
	})
}

// terminate ends the program as the system does, and waits for it.
func (p *program) terminate(t *testing.T) {
	t.Helper()
	syscall.Kill(p.pid, syscall.SIGTERM)
	p.gone(t)
}

func (p *program) gone(t *testing.T) {
	t.Helper()
	if p.cmd != nil {
		if state, err := p.cmd.Process.Wait(); err != nil || !state.Success() { // a program that it has begun may write on
			t.Errorf("the program ended with %v, %v: %s", state, err, p.out)
		}
		return
	}
	eventually.Holds(t, "the program has ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// reload has the program read its Corefile again, and waits until it serves that.
func (p *program) reload(t *testing.T) {
	t.Helper()
	const line = "[INFO] Reloading complete\n"
	before := strings.Count(p.out.String(), line)
	syscall.Kill(p.pid, syscall.SIGUSR1)
	eventually.Holds(t, "the program has reloaded", func() bool { return strings.Count(p.out.String(), line) > before })
}

// upgrade has the program begin another one in its place, and returns that when the first has ended.
func (p *program) upgrade(t *testing.T) *program {
	t.Helper()
	next := p.handOver(t)
	p.gone(t)
	return next
}

// handOver has the program begin another one in its place, and returns that when it serves.
func (p *program) handOver(t *testing.T) *program {
	t.Helper()
	syscall.Kill(p.pid, syscall.SIGUSR2)
	next := &program{dir: p.dir, out: p.out}
	eventually.Holds(t, "another program serves", func() bool {
		text, _ := os.ReadFile(filepath.Join(p.dir, "pid"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		next.pid = pid
		return pid != 0 && pid != p.pid
	})
	if t.Failed() { // and would be waited for in vain
		t.FailNow()
	}
	t.Cleanup(func() { syscall.Kill(next.pid, syscall.SIGKILL) })
	return next
}
