//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// eventually waits until f is true.
func eventually(t *testing.T, what string, f func() bool) bool {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if f() {
			return true
		}
	}
	t.Errorf("in vain waited for: %s", what)
	return false
}

// answer is the address that addr answers with, or "".
func answer(network, addr string) string {
	c := dns.Client{Net: network, Timeout: time.Second}
	m, _, err := c.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), addr)
	if err != nil || len(m.Answer) != 1 {
		return ""
	}
	return m.Answer[0].(*dns.A).A.String()
}

// The program starts with its own flags beside ours, is reloaded by its own signal, and cleans up at the end.
func TestEmbed(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "embed")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	addr := loopback.Addr()
	port := addr[strings.LastIndexByte(addr, ':')+1:]
	mark, watched, pid := filepath.Join(dir, "mark"), filepath.Join(dir, "watched"), filepath.Join(dir, "pid")
	var log bytes.Buffer
	program := exec.Command(binary, "-conf", filepath.Join(dir, "Corefile"), "-dns.port", port, "-pidfile", pid,
		"-localip", "127.0.0.1", "-answer", "192.0.2.1", "-watch", watched, "-mark", mark)
	program.Stdout, program.Stderr = &log, &log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()

	up := eventually(t, "the first answer", func() bool { return answer("udp", addr) == "192.0.2.1" })
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
	if up { // the file is written when the servers have begun to answer
		eventually(t, "the number of the process in its file", func() bool {
			text, _ := os.ReadFile(pid)
			return strings.TrimSpace(string(text)) == strconv.Itoa(program.Process.Pid)
		})
	}
	for _, next := range []string{"192.0.2.2", "192.0.2.3"} {
		if !up {
			break
		}
		if err := os.WriteFile(watched+"~", []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(watched+"~", watched); err != nil {
			t.Fatal(err)
		}
		for _, network := range []string{"udp", "tcp"} {
			eventually(t, network+" after a reload", func() bool { return answer(network, addr) == next })
		}
	}

	program.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		program.Process.Kill()
		<-ended
		t.Error("it does not end")
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("the mark is there: %v", err)
	}
	for _, line := range []string{"node: answers 192.0.2.3 from now on", "the mark is removed"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no line %q in\n%s", line, log.String())
		}
	}
}
