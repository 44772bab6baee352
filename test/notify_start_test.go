package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() {
	plugin.Register("slowstart", func(c *caddy.Controller) error {
		c.OnStartup(func() error {
			time.Sleep(300 * time.Millisecond)
			return nil
		})
		return nil
	})
	dnsserver.Directives = append(dnsserver.Directives, "slowstart")
}

// A secondary that is notified when the server starts comes at once: it finds somebody there, also if the start takes long.
func TestNotifiedAtStart(t *testing.T) {
	secondary, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer secondary.Close()
	path, port := filepath.Join(t.TempDir(), "db"), loopback.Port()
	if err := os.WriteFile(path, []byte("@ 60 IN SOA ns h 7 2 3 4 5\n@ 60 IN NS ns.example.com.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	came := make(chan error, 1)
	go func() {
		b := make([]byte, dns.MaxMsgSize)
		secondary.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, from, err := secondary.ReadFrom(b)
		if err == nil {
			_, err = dns.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA), fmt.Sprintf("127.0.0.1:%d", port))
		}
		m := new(dns.Msg)
		if m.Unpack(b[:n]) == nil {
			b, _ = new(dns.Msg).SetReply(m).Pack()
			secondary.WriteTo(b, from)
		}
		came <- err
	}()
	start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nfile %s\ntransfer {\nto %s\n}\nslowstart\n}", port, path, secondary.LocalAddr()))
	if err := <-came; err != nil {
		t.Errorf("the secondary comes to nobody: %v", err)
	}
}
