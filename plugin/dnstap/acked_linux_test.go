package dnstap

import (
	"crypto/tls"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	tap "github.com/dnstap/golang-dnstap"
	"golang.org/x/sys/unix"
)

// cutOff has nothing arrive at conn from now on, of which nobody is told: it acknowledges nothing.
func cutOff(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}}
	ok := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &nothing)
	})
	if ok != nil || err != nil {
		t.Fatal(ok, err)
	}
}

// A collector that frames do not reach any more is connected to again, though no write fails: a router on the way has
// forgotten the connection, or its machine was begun anew.
func TestCollectorThatIsCutOff(t *testing.T) {
	t.Parallel()
	addr, taken := silent(t)
	told := new(warnings)
	d := &dialer{queue: newQueue(1), network: "tcp", addr: addr, logger: told, patience: 2}
	d.start()
	defer d.stop()
	conn := <-taken
	if _, err := tap.NewReader(conn, &tap.ReaderOptions{Bidirectional: true}); err != nil {
		t.Fatal(err)
	}
	cutOff(t, conn)
	again := false
	eventually.Holds(t, "a new connection", func() bool {
		d.take([]byte{0, 0, 0, 1, 'x'}, 1)
		select {
		case <-taken:
			again = true
		default:
		}
		return again
	})
	told.mu.Lock()
	defer told.mu.Unlock()
	if len(told.all) != 1 || !strings.Contains(told.all[0], addr) {
		t.Errorf("warnings: %q", told.all)
	}
}

// Who takes no more is not cut off, as long as he says so.
func TestUnheard(t *testing.T) {
	t.Parallel()
	pair := func() (near, far net.Conn) {
		addr, taken := silent(t)
		near, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { near.Close() })
		return near, <-taken
	}
	full, _ := pair()
	full.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for full := full; ; {
		if _, err := full.Write(make([]byte, pieceSpace)); err != nil {
			break
		}
	}
	if unheard(full, 1) {
		t.Error("a peer that does not read is given up")
	}
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		near, far := pair()
		cutOff(t, far)
		near.Write([]byte("x"))
		if secure {
			near = tls.Client(near, new(tls.Config))
		}
		eventually.Holds(t, name+": nothing is acknowledged", func() bool { return unheard(near, 2) })
	}
	l, err := net.Listen("unix", filepath.Join(loopback.Folder(t), "tap.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	local, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	if unheard(local, 0) {
		t.Error("a socket of the machine itself acknowledges nothing")
	}
}
