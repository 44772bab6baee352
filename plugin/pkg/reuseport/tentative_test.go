package reuseport

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// An address that an interface has is waited for while no socket can be bound to it; one that none has is not.
func TestTentativeAddress(t *testing.T) {
	own := "127.0.0.1"
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() == nil {
			own = n.IP.String()
		}
	}
	for _, c := range []struct {
		host  string
		fails int // before it is to be had
		tries int
	}{{own, 2, 3}, {own, 0, 1}, {"2001:db8::53", 2, 1}, {"127.0.0.1", 2, 1}} {
		if c.host == "127.0.0.1" && c.tries > 1 {
			t.Log("there is no IPv6")
			continue
		}
		tries := 0
		_, err := settled(net.JoinHostPort(c.host, "53"), func() (net.Listener, error) {
			if tries++; tries <= c.fails {
				return nil, &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)}
			}
			return nil, nil
		})
		if tries != c.tries || (err == nil) != (c.tries > c.fails) {
			t.Errorf("%s: tried %d times, %v", c.host, tries, err)
		}
	}
}
