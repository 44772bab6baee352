package conn

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/reuseport"

	"golang.org/x/sys/unix"
)

// mayFilter skips the test where only the mighty may filter a TCP socket.
func mayFilter(t *testing.T) {
	t.Helper()
	l, err := reuseport.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := refuseSYN(raw); errors.Is(err, unix.EPERM) {
		t.Skip("this system wants CAP_NET_ADMIN for a filter of a TCP socket: run the test as root")
	}
}

// A listener that is about to be closed takes those who have begun to connect, and nobody else.
func TestQuiesce(t *testing.T) {
	l, err := reuseport.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mayFilter(t)
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
