package conn

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/reuseport"

	"golang.org/x/sys/unix"
)

// A listener that is about to be closed takes those who have begun to connect, and nobody else, by each of the means that the
// system may have.
func TestQuiesce(t *testing.T) {
	for name, refuse := range map[string]func(syscall.RawConn) error{"filter": refuseSYN, "interface": leaveInterfaces, "either": nil} {
		for _, addr := range []string{"127.0.0.1:0", ":0"} {
			t.Run(name+" "+addr, func(t *testing.T) {
				l, err := reuseport.Listen("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				at := loopback.To(l.Addr().String())
				early, err := net.Dial("tcp", at)
				if err != nil {
					t.Fatal(err)
				}
				defer early.Close()
				if refuse == nil {
					Quiesce(l)
				} else if raw, err := l.(*net.TCPListener).SyscallConn(); err != nil {
					t.Fatal(err)
				} else if err := refuse(raw); errors.Is(err, unix.EPERM) && name == "filter" {
					t.Skip("this system wants CAP_NET_ADMIN for a filter of a TCP socket: run the test as root")
				} else if err != nil {
					t.Fatal(err)
				}
				if late, err := net.DialTimeout("tcp", at, 200*time.Millisecond); err == nil {
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
			})
		}
	}
}
