package loopback

import (
	"net"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// Nobody else can have a port that is taken, until the test ends.
func TestTaken(t *testing.T) {
	var addr string
	t.Run("while it runs", func(t *testing.T) {
		addr = net.JoinHostPort(host, Taken(t))
		if l, err := reuseport.Listen("tcp", addr); err == nil {
			l.Close()
			t.Error("somebody else has it")
		}
	})
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("when it has ended: %v", err)
	}
	l.Close()
}
