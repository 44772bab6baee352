//go:build unix

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// A program that another one could not take over from goes on, and ends when it is told to, also after a reload: its
// sockets are as they were.
func TestFailedUpgrade(t *testing.T) {
	for _, reloads := range []int{0, 1} {
		for _, proxy := range []string{"", "proxyproto {\n\t\tallow 192.0.2.0/24\n\t}"} {
			t.Run(fmt.Sprintf("%d reloads, %.5s", reloads, proxy), func(t *testing.T) { failUpgrade(t, reloads, proxy) })
		}
	}
}

func failUpgrade(t *testing.T, reloads int, proxy string) {
	dir, port, doq, doh3 := t.TempDir(), loopback.Port(), loopback.Port(), loopback.Port()
	certificates(t, dir)
	keys := filepath.Join(dir, "keys")
	corefile := fmt.Sprintf(".:%d quic://.:%d https3://.:%d {\n\tbind 127.0.0.1\n\ttls %s/cert.pem %[4]s/key.pem\n\t%s\n\twhoami\n"+
		"\ttsig {\n\t\tsecrets %s\n\t}\n}\n", port, doq, doh3, dir, proxy, keys)
	for path, text := range map[string]string{keys: "key a { secret AAAA; };\n", filepath.Join(dir, "Corefile"): corefile} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := runProgram(t, dir)
	for range reloads {
		p.reload(t)
	}
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(p.pid, syscall.SIGUSR2)
	eventually.Holds(t, "the other program has failed", func() bool { return strings.Contains(p.out.String(), "child failed to initialize") })
	q := question("www.example.org.", dns.TypeA)
	for range 2 {
		for _, network := range []string{"udp", "tcp"} {
			c := dns.Client{Net: network, Timeout: 10 * time.Second}
			if _, _, err := c.Exchange(q, fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
				t.Errorf("over %s: %v", network, err)
			}
		}
		if _, err := askNew(fmt.Sprintf("127.0.0.1:%d", doq), q); err != nil {
			t.Errorf("over QUIC: %v", err)
		}
		h := clients.DialHTTP3(t, fmt.Sprintf("127.0.0.1:%d", doh3), "POST")
		if _, err := h.Ask(q); err != nil {
			t.Errorf("over HTTP/3: %v", err)
		}
		h.Close()
	}
	hangs := time.AfterFunc(20*time.Second, func() { syscall.Kill(p.pid, syscall.SIGKILL) })
	p.terminate(t)
	hangs.Stop()
}
