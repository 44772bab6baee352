//go:build unix

package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
