package conn

import (
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// A listener that is about to be closed takes those who have begun to connect, and nobody else.
func TestQuiesce(t *testing.T) {
	l, err := reuseport.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	early, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	Quiesce(l)
	if late, err := net.DialTimeout("tcp", l.Addr().String(), 200*time.Millisecond); err == nil {
		late.Close()
		t.Error("a client that came afterwards was let in")
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if accepted.RemoteAddr().String() != early.LocalAddr().String() {
		t.Errorf("accepted %s", accepted.RemoteAddr())
	}
}
