package udp

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/reusegroup"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// A socket that leaves gets no more datagrams, also if a program of the group chooses it; what is queued in it stays.
func TestSocketLeaves(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "", "[::1]"} {
		for _, consolidated := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s consolidated %v", host, consolidated), func(t *testing.T) { socketLeaves(t, host, consolidated) })
		}
	}
}

func socketLeaves(t *testing.T, host string, consolidated bool) {
	var conns [2]*net.UDPConn
	addr := host + ":0"
	for i := range conns {
		p, err := reuseport.ListenPacket("udp", addr)
		if err != nil {
			t.Skipf("no such address here: %v", err)
		}
		defer p.Close()
		conns[i], addr = p.(*net.UDPConn), p.LocalAddr().String()
	}
	if consolidated {
		if reusegroup.New(conns[1], false) == nil {
			t.Skip("the kernel does not let itself be told (before Linux 4.5)")
		}
	}
	_, port, _ := net.SplitHostPort(addr)
	to := map[string]string{"": "127.0.0.1"}[host]
	if to == "" {
		to = host
	}
	const many = 64
	sendMany := func() {
		t.Helper()
		for range many {
			c, err := net.Dial("udp", to+":"+port)
			if err != nil {
				t.Fatal(err)
			}
			c.Write([]byte("x"))
			c.Close()
		}
	}
	count := func(c *net.UDPConn, least int) (n int) {
		buf := make([]byte, 16)
		for {
			wait := 20 * time.Millisecond
			if n < least {
				wait = 5 * time.Second
			}
			c.SetReadDeadline(time.Now().Add(wait))
			if _, _, err := c.ReadFrom(buf); err != nil {
				return n
			}
			n++
		}
	}
	sendMany()
	sock, err := newBatchedSocket(conns[0])
	if err != nil {
		t.Fatal(err)
	}
	sock.leave()
	sendMany()
	second := count(conns[1], many)
	if first := count(conns[0], 2*many-second); first+second != 2*many || first < many/4 || first > many {
		t.Errorf("the socket that left got %d datagrams, the other %d", first, second)
	}
}
