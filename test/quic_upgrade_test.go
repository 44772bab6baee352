//go:build unix

package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// heldBack is a way to a server of UDP for one client. It keeps back what the client sends when the server has answered,
// until release is closed; answered is closed then.
func heldBack(t *testing.T, server string) (addr string, answered, release chan struct{}) {
	t.Helper()
	near, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.Dial("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	answered, release = make(chan struct{}), make(chan struct{})
	from := make(chan net.Addr, 1)
	go func() {
		b := make([]byte, 65536)
		for {
			n, client, err := near.ReadFrom(b)
			if err != nil {
				return
			}
			select {
			case from <- client:
			default:
			}
			datagram := slices.Clone(b[:n])
			select {
			case <-answered:
				go func() {
					<-release
					far.Write(datagram)
				}()
			default:
				far.Write(datagram)
			}
		}
	}()
	go func() {
		client := <-from
		b := make([]byte, 65536)
		for first := true; ; first = false {
			n, err := far.Read(b)
			if err != nil {
				return
			}
			if first {
				close(answered)
			}
			near.WriteTo(b[:n], client)
		}
	}()
	return near.LocalAddr().String(), answered, release
}

// Whom a program has asked to prove his address is served by the one that takes its place meanwhile.
func TestUpgradeKeepsProvenAddresses(t *testing.T) {
	dir, port := t.TempDir(), loopback.Port()
	certificates(t, dir)
	corefile := fmt.Sprintf("quic://.:%d {\nbind 127.0.0.1\ntls %s/cert.pem %[2]s/key.pem\nquic {\nmax_connections 1\n}\nwhoami\n}\n", port, dir)
	if err := os.WriteFile(filepath.Join(dir, "Corefile"), []byte(corefile), 0o600); err != nil {
		t.Fatal(err)
	}
	p := runProgram(t, dir)
	server := fmt.Sprintf("127.0.0.1:%d", port)
	q := question("www.example.org.", dns.TypeA)
	// As there is one connection, which is counted when it is answered, others have to prove their addresses.
	first := clients.DialQUIC(t, server)
	if _, err := first.Ask(q); err != nil {
		t.Fatal(err)
	}
	addr, answered, release := heldBack(t, server)
	got := make(chan error, 1)
	go func() {
		_, err := askNew(addr, q)
		got <- err
	}()
	<-answered
	first.Close()
	p = p.upgrade(t)
	close(release)
	if err := <-got; err != nil {
		t.Error(err)
	}
	p.terminate(t)
}

// Who connects while a program still waits for a slow query is served by the one that takes its place, and the slow
// query is answered, too. So it is in a reload that cannot go on with the connections.
func TestUpgradeServesNewQUICClients(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("packets are passed on on Linux only: run this there")
	}
	t.Run("upgrade", func(t *testing.T) {
		newQUICClients(t, func(p *program, _ func(string)) *program { return p.handOver(t) })
	})
	t.Run("reload", func(t *testing.T) {
		auth := "nocert"
		newQUICClients(t, func(p *program, write func(auth string)) *program {
			if auth == "nocert" {
				auth = "request"
			} else {
				auth = "nocert"
			}
			write(auth)
			syscall.Kill(p.pid, syscall.SIGUSR1)
			return p
		})
	})
}

// newQUICClients has clients connect while what turns over has a slow query.
func newQUICClients(t *testing.T, turnOver func(p *program, write func(auth string)) *program) {
	upstream, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	asked := make(chan func(), 100)
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := upstream.ReadFrom(b)
			if err != nil {
				return
			}
			q := new(dns.Msg)
			if q.Unpack(b[:n]) == nil {
				m, _ := new(dns.Msg).SetReply(q).Pack()
				asked <- func() { upstream.WriteTo(m, from) }
			}
		}
	}()
	dir, port := t.TempDir(), loopback.Port()
	certificates(t, dir)
	write := func(auth string) {
		corefile := fmt.Sprintf("quic://.:%d {\nbind 127.0.0.1\ntls %s/cert.pem %[2]s/key.pem {\nclient_auth %s\n}\ntemplate ANY ANY new.example {\nrcode NXDOMAIN\n}\nforward . %s\n}\n",
			port, dir, auth, upstream.LocalAddr())
		if err := os.WriteFile(filepath.Join(dir, "Corefile"), []byte(corefile), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("nocert")
	p := runProgram(t, dir)
	server := fmt.Sprintf("127.0.0.1:%d", port)
	// Without that a client waits until the first has ended, for two seconds at most.
	const held, soon = time.Second, 600 * time.Millisecond
	best := time.Hour
	for try := 0; try < 3 && best > soon; try++ {
		slow := clients.DialQUIC(t, server)
		got := make(chan error, 1)
		go func() {
			_, err := slow.Ask(question(fmt.Sprintf("slow%d.example.", try), dns.TypeA))
			got <- err
		}()
		answer := <-asked
		next, slowest := turnOver(p, write), time.Duration(0)
		for end := time.Now().Add(held); time.Now().Before(end); {
			begun := time.Now()
			if m, err := askNew(server, question("new.example.", dns.TypeA)); err != nil || m.Rcode != dns.RcodeNameError {
				t.Fatalf("a new client got %v, %v", m, err)
			}
			slowest = max(slowest, time.Since(begun))
		}
		best = min(best, slowest)
		select {
		case <-slow.Conn.Context().Done():
			t.Error("the connection of the slow query has ended")
		default:
		}
		answer()
		if err := <-got; err != nil {
			t.Errorf("the slow query: %v", err)
		}
		if next != p {
			p.gone(t)
			p = next
		}
	}
	if best > soon {
		t.Errorf("new clients waited %s", best)
	}
	p.terminate(t)
}
