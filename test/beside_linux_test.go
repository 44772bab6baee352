package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// A program that starts while the one before it still waits for a reply gets all queries: that one reads none any more.
func TestStartBesideOneThatEnds(t *testing.T) {
	upstream, err := net.ListenPacket("udp", "127.0.0.1:0") // which never answers
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	inDir := func(plugin string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "Corefile"), fmt.Appendf(nil, ".:%d {\nbind 127.0.0.1\n%s\n}\n", port, plugin), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	old := runProgram(t, inDir("forward . "+upstream.LocalAddr().String()))
	asked, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	b, err := question("example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	asked.Write(b)
	upstream.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, _, err := upstream.ReadFrom(make([]byte, 512)); err != nil {
		t.Fatal("the query does not come to the upstream:", err)
	}
	syscall.Kill(old.pid, syscall.SIGTERM)
	// Sockets that get no more datagrams are connected, to a port from which nobody asks.
	eventually.Holds(t, "the program's sockets get no more", func() bool {
		all, err := os.ReadFile("/proc/net/udp")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(all)) {
			if f := strings.Fields(line); strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				if n++; strings.HasSuffix(f[2], ":0000") {
					return false
				}
			}
		}
		if n == 0 {
			t.Fatal("the program has none")
		}
		return true
	})
	syscall.Kill(old.pid, syscall.SIGSTOP) // so that it has them to the end

	runProgram(t, inDir("whoami"))
	for range 50 {
		c := dns.Client{Timeout: 10 * time.Second}
		if m, _, err := c.Exchange(question("example.org.", dns.TypeA), addr); err != nil || len(m.Extra) == 0 {
			t.Fatal(m, err)
		}
	}
}
