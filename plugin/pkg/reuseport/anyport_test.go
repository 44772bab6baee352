//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package reuseport_test

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// A port that the system chooses is nobody else's, and can be shared then.
func TestAnyPort(t *testing.T) {
	const sockets = 600 // of which some would share a port with another one, on Linux
	taken := map[string]bool{}
	for range sockets {
		p, err := reuseport.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if addr := p.LocalAddr().String(); taken[addr] {
			t.Fatalf("%s is given twice, the second time after %d sockets", addr, len(taken))
		} else {
			taken[addr] = true
		}
	}
	for addr := range taken {
		p, err := reuseport.ListenPacket("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		break
	}
}
