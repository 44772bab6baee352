package loopback

import (
	"net"
	"testing"
)

// Taken is a port of 127.0.0.1 for TCP at which somebody listens, until the test ends, who shares it with nobody: a
// server that is to have it cannot start, also with SO_REUSEPORT.
func Taken(t testing.TB) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
