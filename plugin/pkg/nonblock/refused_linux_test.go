package nonblock

import (
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/sockcall/sockcalltest"

	"golang.org/x/sys/unix"
)

// msgWriter is what QUIC's library sends with.
type msgWriter interface {
	WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error)
}

// A datagram that the system refuses is lost and no error, unless it was the first one or several were refused in a row.
func TestRefusedDatagrams(t *testing.T) {
	for _, e := range []unix.Errno{unix.EPERM, unix.ENOBUFS, unix.ENOMEM, unix.ENETUNREACH} {
		c := socket4(t)
		p, to := Packets(c).(msgWriter), c.LocalAddr().(*net.UDPAddr)
		sends := func() error {
			n, oobn, err := p.WriteMsgUDP([]byte("query"), nil, to)
			if err == nil && (n != len("query") || oobn != 0) {
				t.Errorf("%v: %d and %d octets were sent", e, n, oobn)
			}
			return err
		}
		refused := make(chan error)
		next := make(chan struct{})
		go func() { // on a thread that nobody else gets
			runtime.LockOSThread()
			if err := sockcalltest.RefuseCalls(e, false, unix.SYS_SENDMSG, unix.SYS_SENDTO); err != nil {
				t.Error(err)
			}
			for range next {
				refused <- sends()
			}
		}()
		fails := func(step string, want bool) {
			t.Helper()
			next <- struct{}{}
			if err := <-refused; errors.Is(err, e) != want || !want && err != nil {
				t.Errorf("%v, %s: %v", e, step, err)
			}
		}
		fails("the first one", true)
		for range 2 {
			if err := sends(); err != nil {
				t.Fatal(err)
			}
			for range maxRefused {
				fails("after one that was sent", e == unix.ENETUNREACH)
			}
			fails("several in a row", true)
			fails("several in a row", true)
		}
		close(next)
	}
}
