package zonetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Other servers, for tests that compare with them and talk to them, on loopback.

// Program is the path of a program, or skips the test with what to do about it; debian is the package that has it.
func Program(t testing.TB, name, debian string) string {
	t.Helper()
	for _, dir := range []string{"", "/usr/sbin/", "/usr/bin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed: apt-get install %s", name, debian)
	return ""
}

// Run starts a program in a folder, and ends it with the test; if that failed, what it said is shown. reload has it
// read its files again, as servers do when they are sent SIGHUP.
func Run(t testing.TB, dir, path string, args ...string) (reload func()) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			cmd.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
		log.Close()
		if t.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("%s says at last:\n%s", path, text[max(0, len(text)-3000):])
			}
		}
	})
	return func() { cmd.Process.Signal(syscall.SIGHUP) }
}

// Await waits until the server at addr has a zone, with that serial unless it is 0.
func Await(t testing.TB, addr, zone string, serial uint32) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		m, err := dns.Exchange(new(dns.Msg).SetQuestion(zone, dns.TypeSOA), addr)
		if err != nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) == 0 {
			continue
		}
		if soa, ok := m.Answer[0].(*dns.SOA); serial == 0 || ok && soa.Serial == serial {
			return
		}
	}
	t.Fatalf("%s does not have %s with serial %d", addr, zone, serial)
}
