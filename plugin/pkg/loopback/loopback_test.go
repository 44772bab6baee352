package loopback

import (
	"net"
	"testing"
)

func TestPortsAreOnesOwn(t *testing.T) {
	seen := map[int]bool{}
	for range 500 {
		port := Port()
		if seen[port] {
			t.Fatalf("port %d was given twice", port)
		}
		seen[port] = true
		if own.end-lowest >= few && (port < lowest || port >= own.end) {
			t.Fatalf("port %d is one of the system's own, from %d on", port, own.end)
		}
	}
}

func TestListen(t *testing.T) {
	for name, p := range map[string]*ports{
		"ports of its own":   {end: systems},
		"the system chooses": {end: lowest + few - 1},
	} {
		t.Run(name, func(t *testing.T) {
			conn, l, err := p.listen()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			defer l.Close()
			if udp, tcp := conn.LocalAddr().(*net.UDPAddr), l.Addr().(*net.TCPAddr); udp.Port != tcp.Port || !udp.IP.IsLoopback() || !tcp.IP.IsLoopback() {
				t.Errorf("%v and %v", udp, tcp)
			}
		})
	}
}

// A port that is in use over one of the two is passed over.
func TestListenPassesOver(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			conn, l, err := Listen()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			defer l.Close()
			taken := l.Addr().(*net.TCPAddr).Port
			if network == "udp" {
				l.Close()
			} else {
				conn.Close()
			}
			p := ports{end: systems, begin: uint32(taken - lowest)}
			p.given.Store(^uint32(0)) // so that taken comes first
			if taken < lowest || taken >= systems {
				t.Skip("the system's range of ports leaves none for tests: sysctl net.ipv4.ip_local_port_range='32768 60999'")
			}
			conn, l, err = p.listen()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			defer l.Close()
			if port := l.Addr().(*net.TCPAddr).Port; port == taken || p.given.Load() == 0 {
				t.Errorf("port %d, %d is taken; %d more were tried", port, taken, p.given.Load())
			}
		})
	}
}

func TestTo(t *testing.T) {
	if got := To("[::]:53"); got != "127.0.0.1:53" {
		t.Errorf("got %s", got)
	}
}
