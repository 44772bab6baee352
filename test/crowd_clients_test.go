package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// Clients that do not read what they ask for, here transfers, keep their places from others for a second. They had them
// for as long as writes may take, each time that they read a little.
func TestClientsThatDoNotReadGiveWay(t *testing.T) {
	const most = 8
	dir := t.TempDir()
	certificates(t, dir)
	zone := "$TTL 60\n@ IN SOA ns h 7 2 3 4 5\n@ IN NS ns\nns IN A 192.0.2.1\n" +
		"$GENERATE 1-16000 host-$ IN TXT" + strings.Repeat(" "+strings.Repeat("x", 200), 4) + "\n" // more than sockets hold
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(zone), 0o600); err != nil {
		t.Fatal(err)
	}
	ask, err := new(dns.Msg).SetAxfr("example.org.").Pack()
	if err != nil {
		t.Fatal(err)
	}
	ask[0], ask[1] = 0, 0 // as QUIC has it
	for name, begin := range map[string]func(t *testing.T, plain, quic int){
		"tcp": func(t *testing.T, plain, _ int) {
			for range most { // a connection reads no more when its replies wait
				c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", plain))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				if _, err := c.Write(clients.Frame(ask)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"quic": func(t *testing.T, _, quic int) {
			c := clients.DialQUIC(t, fmt.Sprintf("127.0.0.1:%d", quic))
			for range most {
				stream, err := c.Conn.OpenStreamSync(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := stream.Write(clients.Frame(ask)); err != nil {
					t.Fatal(err)
				}
				stream.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			nextForeign = new(foreign)
			plain, quic, metrics := loopback.Port(), loopback.Port(), loopback.Addr()
			start(t, fmt.Sprintf(".:%d quic://.:%d {\nbind 127.0.0.1\nprometheus %s\ntls %s/cert.pem %[4]s/key.pem\nforeign\n"+
				"file %[4]s/db example.org\ntransfer {\nto *\n}\ntimeouts {\nwrite 5m\n}\nlimits {\nwaiting %d\n}\n}", plain, quic, metrics, dir, most))
			answered := func() bool {
				c := &dns.Client{Timeout: 100 * time.Millisecond}
				m, _, err := c.Exchange(question("ns.example.org.", dns.TypeA), fmt.Sprintf("127.0.0.1:%d", plain))
				return err == nil && len(m.Answer) == 1
			}
			eventually.Holds(t, "it is answered", answered)
			begin(t, plain, quic)
			eventually.Holds(t, "it is cut off, where there is no room", func() bool {
				answered()
				server := map[string]string{"tcp": fmt.Sprintf("dns://127.0.0.1:%d", plain), "quic": fmt.Sprintf("quic://127.0.0.1:%d", quic)}[name]
				cut := series(metrics, "coredns_dns_limits_reached_total", map[string]string{"server": server, "reason": "waiting"})
				return cut != "" && cut != "0"
			})
			eventually.Holds(t, "there is room", answered)
		})
	}
}
