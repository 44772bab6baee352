package sockcall

import (
	"bytes"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/sockcall/sockcalltest"
	"golang.org/x/sys/unix"
)

// all are the states of this package.
var all = []*refusal{&noReceiveBatch, &noSendBatch, &noReceiveFrom, &noSendTo, &noReceive, &noSend}

// refuse has the system refuse calls, or those that others need not have, to the goroutine's thread, which ends with
// the goroutine.
func refuse(t *testing.T, e syscall.Errno, calls ...uint32) {
	runtime.LockOSThread()
	var err error
	if calls == nil {
		err = sockcalltest.Refuse(e, false)
	} else {
		err = sockcalltest.RefuseCalls(e, false, calls...)
	}
	if err != nil {
		t.Skipf("no filters of system calls: %v", err)
	}
	if _, _, got := unix.RawSyscall6(unix.SYS_RECVMMSG, ^uintptr(0), 0, 0, 0, 0, 0); got != e {
		t.Fatalf("recvmmsg gives %v", got)
	}
}

// unknownAgain has all calls unknown, now and after the test.
func unknownAgain(t *testing.T) {
	reset := func() {
		for _, r := range all {
			r.state.Store(unknown)
		}
	}
	reset()
	t.Cleanup(reset)
}

// sockets are two that are connected with each other.
func sockets(t *testing.T, kind int) (a, b uintptr) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return uintptr(fds[0]), uintptr(fds[1])
}

func TestCalls(t *testing.T) {
	t.Run("known", exchanges)
	for _, e := range []syscall.Errno{unix.EPERM, unix.ENOSYS} {
		t.Run(e.Error(), func(t *testing.T) {
			unknownAgain(t)
			refuse(t, e)
			exchanges(t)
			for i, r := range all {
				if !r.refused() && !(raceEnabled && i >= 4) {
					t.Errorf("call %d is not known to be refused", i)
				}
			}
			exchanges(t)
		})
	}
}

// exchanges sends and receives by each call.
func exchanges(t *testing.T) {
	a, b := sockets(t, unix.SOCK_DGRAM)
	var texts, bufs [3][]byte
	var out, in [3]Header
	var vecs [6]unix.Iovec
	header := func(h *Header, v *unix.Iovec, b []byte) {
		v.Base = &b[0]
		v.SetLen(len(b))
		h.Iov = v
		h.SetIovlen(1)
	}
	for i := range texts {
		texts[i], bufs[i] = []byte(fmt.Sprint("datagram ", i*100)), make([]byte, 50)
		header(&out[i], &vecs[i], texts[i])
		header(&in[i], &vecs[3+i], bufs[i])
	}
	if n, e := ReceiveBatch(b, in[:]); n != 0 || e != unix.EAGAIN {
		t.Errorf("%d datagrams, %v, of none", n, e)
	}
	if n, e := SendBatch(a, out[:2]); n != 2 || e != 0 {
		t.Fatalf("%d of 2 datagrams sent: %v", n, e)
	}
	if n, e := ReceiveBatch(b, in[:]); n != 2 || e != 0 {
		t.Fatalf("%d of 2 datagrams received: %v", n, e)
	}
	for i := range 2 {
		if got := bufs[i][:in[i].N]; !bytes.Equal(got, texts[i]) {
			t.Errorf("received %q for %q", got, texts[i])
		}
	}

	var name unix.RawSockaddrInet6
	var size uint32
	if n, e := ReceiveFrom(b, bufs[0], &name, &size); n > 0 || e != unix.EAGAIN {
		t.Errorf("%d octets, %v, of none", n, e)
	}
	if e := SendTo(a, texts[2], nil, 0); e != 0 {
		t.Fatal(e)
	}
	if n, e := ReceiveFrom(b, bufs[0], &name, &size); e != 0 || !bytes.Equal(bufs[0][:max(n, 0)], texts[2]) {
		t.Errorf("received %q, %v", bufs[0][:max(n, 0)], e)
	}

	a, b = sockets(t, unix.SOCK_STREAM)
	if _, e := Receive(b, bufs[1]); e != unix.EAGAIN {
		t.Errorf("%v of nothing", e)
	}
	if n, e := Send(a, texts[0]); n != len(texts[0]) || e != 0 {
		t.Fatalf("%d octets sent: %v", n, e)
	}
	if n, e := Receive(b, bufs[1]); e != 0 || !bytes.Equal(bufs[1][:max(n, 0)], texts[0]) {
		t.Errorf("received %q, %v", bufs[1][:max(n, 0)], e)
	}
	unix.Shutdown(int(a), unix.SHUT_RDWR)
	if n, e := Receive(b, bufs[1]); n != 0 || e != 0 {
		t.Errorf("%d, %v at the end", n, e)
	}
	if _, e := Send(b, texts[0]); e != unix.EPIPE {
		t.Errorf("%v behind the end", e)
	}
}

// Who sent a datagram is told, and a name is sent to, either way.
func TestNames(t *testing.T) {
	for _, e := range []syscall.Errno{0, unix.EPERM} {
		t.Run(fmt.Sprint(e), func(t *testing.T) {
			if e != 0 {
				unknownAgain(t)
				refuse(t, e)
			}
			var fds [2]int
			var names [2]unix.RawSockaddrInet6
			for i := range fds {
				fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
				if err == nil {
					err = unix.Bind(fd, &unix.SockaddrInet6{Addr: [16]byte{15: 1}})
				}
				if err != nil {
					t.Skipf("no IPv6: %v", err)
				}
				t.Cleanup(func() { unix.Close(fd) })
				if fds[i] = fd; Name(uintptr(fd), &names[i]) != 0 {
					t.Fatal("the socket has no name")
				}
			}
			if e := SendTo(uintptr(fds[0]), []byte("text"), &names[1], unix.SizeofSockaddrInet6); e != 0 {
				t.Fatal(e)
			}
			var from unix.RawSockaddrInet6
			var size uint32
			b := make([]byte, 10)
			n, e := ReceiveFrom(uintptr(fds[1]), b, &from, &size)
			if e != 0 || string(b[:n]) != "text" || from != names[0] || size != unix.SizeofSockaddrInet6 {
				t.Errorf("got %q of %v, %d octets of name, %v", b[:max(n, 0)], from, size, e)
			}
		})
	}
}

// Connections are accepted, and who has made them is told.
func TestAccept(t *testing.T) { accepts(t) }

func accepts(t *testing.T) {
	t.Helper()
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 1); err != nil {
		t.Fatal(err)
	}
	var own, peer, client, local unix.RawSockaddrInet6
	if _, e := Accept(uintptr(listener), &peer); e != unix.EAGAIN {
		t.Errorf("%v of no connection", e)
	}
	if e := Name(uintptr(listener), &own); e != 0 || own.Family != unix.AF_INET || own.Port == 0 {
		t.Fatalf("the listener is at %v, %v", own, e)
	}
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c)
	at, err := unix.Getsockname(listener)
	if err == nil {
		err = unix.Connect(c, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, e := Accept(uintptr(listener), &peer)
	if e != 0 {
		t.Fatal(e)
	}
	defer unix.Close(fd)
	Name(uintptr(c), &client)
	Name(uintptr(fd), &local)
	if peer != client || local != own {
		t.Errorf("of %v to %v; it is %v to %v", peer, local, client, own)
	}
	if flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); flags&unix.O_NONBLOCK == 0 {
		t.Error("it blocks")
	}
	if flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
		t.Error("programs that are begun get it")
	}
}

// A firewall refuses packets with the error of a sandbox. The call is not given up for that, neither when it has
// worked before, nor when the other one comes to the same.
func TestFirewall(t *testing.T) {
	var r refusal
	if !r.suspected(unix.EPERM) {
		t.Error("a refusal is not suspected")
	}
	if r.settle(unix.EPERM); r.refused() {
		t.Error("given up though the other one was refused, too")
	}
	if r.suspected(0); r.suspected(unix.EPERM) {
		t.Error("suspected though it has worked")
	}
}
