package conn

import (
	"net"
	"testing"
	"time"
)

// from is a connection of a client with a port.
type from struct {
	net.Conn
	port int
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: f.port} }

// Clients that ask on while the server stops are not all sent away at one moment.
func TestReadTime(t *testing.T) {
	moments := map[time.Duration]int{}
	for port := 32768; port < 33768; port += 2 { // the system gives clients every other one
		at := (&Conn{conn: from{port: port}}).readTime()
		if at < leastTime || at > lastTime {
			t.Fatalf("port %d: %v", port, at)
		}
		moments[at.Truncate(lastTime/10)]++
	}
	for at, n := range moments {
		if n > 125 {
			t.Errorf("%d of 500 at %v", n, at)
		}
	}
}
