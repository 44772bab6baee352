package thirdparty

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// A program that assigns dnsserver.Directives and calls coremain.Run has its plugins in its own order and says its own version.
func TestDirectivesProgram(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "greeter")
	if out, err := exec.Command("go", "build", "-o", binary, "./testdata/directives").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(binary, "-version").Output(); err != nil || !strings.HasPrefix(string(out), "Greeter-7/") {
		t.Errorf("%v, %q", err, out)
	}
	addr := loopback.Addr()
	port := addr[strings.LastIndexByte(addr, ':')+1:]
	write := func(name, lines string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(".:"+port+" {\nbind 127.0.0.1\n"+lines+"\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, lines := range []string{"forward . 127.0.0.1", "cache"} { // not linked in, and not in the list
		if out, err := exec.Command(binary, "-conf", write("refused", lines)).CombinedOutput(); err == nil {
			t.Errorf("%s: %s", lines, out)
		}
	}
	var log bytes.Buffer
	program := exec.Command(binary, "-conf", write("Corefile", "whoami\ngreeter"))
	program.Stdout, program.Stderr = &log, &log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	answered := false
	for end := time.Now().Add(30 * time.Second); !answered && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		_, err := dns.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeTXT), addr)
		answered = err == nil
	}
	if answered {
		s := &server{t, nil, map[string]string{"udp": addr, "tcp": addr}}
		s.expect("example.org.", dns.TypeTXT, `NOERROR TXT "hello" "127.0.0.1"`)
	}
	program.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		program.Process.Kill()
		<-ended
		t.Error("it does not end")
	}
	if !answered || !strings.Contains(log.String(), "Greeter-7/") {
		t.Errorf("answered %t:\n%s", answered, log.String())
	}
}
