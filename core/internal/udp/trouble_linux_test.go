package udp

import (
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/sockcall/sockcalltest"

	"golang.org/x/sys/unix"
)

// broken is a socket that cannot be read while it is broken.
type broken struct {
	net.PacketConn
	is     atomic.Bool
	failed atomic.Int32
}

func (b *broken) ReadFrom(p []byte) (int, net.Addr, error) {
	if b.is.Load() {
		b.failed.Add(1)
		return 0, nil, os.NewSyscallError("recvfrom", syscall.ENOMEM)
	}
	return b.PacketConn.ReadFrom(p)
}

// While a socket cannot be read its queries wait, and one line tells why.
func TestSocketCannotBeRead(t *testing.T) {
	out := logtest.Capture(t)
	p := &broken{PacketConn: coretest.ListenUDP(t)}
	p.is.Store(true)
	s := serveOn(t, coretest.Service(t, coretest.Label(t), new(coretest.Lane)), p, Options{})
	eventually.Holds(t, "reading fails", func() bool { return p.failed.Load() > 5 })
	p.is.Store(false)
	if r := ask(t, s.addr, "www.", nil); len(r.Answer) != 1 {
		t.Errorf("after that: %v", r)
	}
	want := "[WARNING] Queries to " + s.service.Label + " wait until they can be read: recvfrom: cannot allocate memory\n"
	if got := out.String(); got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// Of replies that a firewall refuses a line tells.
func TestRepliesRefused(t *testing.T) {
	out := logtest.Capture(t)
	unsent = log.Seldom{}
	_, to, box := listening(t, "127.0.0.1:0")
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends with the goroutine
		err := sockcalltest.RefuseCalls(unix.EPERM, false, unix.SYS_SENDMMSG, unix.SYS_SENDMSG)
		if err == nil {
			for range 3 {
				box.queue([]byte("lost"), nil, to, 0, nil)
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skipf("no filters of system calls: %v", err)
	}
	want := "[WARNING] Replies over UDP are lost, such as one to " + to.String() + ": sendmmsg: operation not permitted\n"
	if got := out.String(); strings.Count(got, want) != 1 {
		t.Errorf("the log has %q, want %q once", got, want)
	}
}
