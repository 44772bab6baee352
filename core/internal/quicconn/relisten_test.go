package quicconn

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// faulty is a socket on which reading fails while it is broken.
type faulty struct {
	net.PacketConn
	broken atomic.Bool
	failed atomic.Int32
}

func (f *faulty) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := f.PacketConn.ReadFrom(b)
	if f.broken.Load() && err == nil {
		f.failed.Add(1)
		return 0, nil, &net.OpError{Op: "read", Net: "udp", Err: os.NewSyscallError("recvmsg", syscall.ENOMEM)}
	}
	return n, from, err
}

// When the socket cannot be read for a while, clients are served again after that.
func TestSocketFails(t *testing.T) {
	out := logtest.Capture(t)
	s, e := serviceFor(t), newEcho()
	p := coretest.ListenUDP(t)
	f := &faulty{PacketConn: p}
	q, err := Listen(s, p, f, codes)
	if err != nil {
		t.Fatal(err)
	}
	end := coretest.Serving(t, q, func() error { return q.Serve(s, e.serve) })
	for range 2 {
		before := dial(t, addrOf(q))
		if got := said(t, before, "hello")(); got != answer(s, "hello") {
			t.Fatalf("got %s", got)
		}
		f.broken.Store(true)
		failed := f.failed.Load()
		said(t, before, "lost")
		eventually.Holds(t, "reading fails", func() bool { return f.failed.Load() > failed })
		f.broken.Store(false)
	}
	if got := said(t, dial(t, addrOf(q)), "again")(); got != answer(s, "again") {
		t.Errorf("after the fault: got %s", got)
	}
	out.Await(t, "[WARNING] Connections of QUIC at "+addrOf(q)+" were lost: quic: transport closed: read udp: recvmsg: cannot allocate memory")
	if err := end(); err != nil {
		t.Error(err)
	}
}

// Who stops while the socket is not listened to for a fault is told of no error.
func TestStopAfterFault(t *testing.T) {
	logtest.Capture(t)
	s, e := serviceFor(t), newEcho()
	p := coretest.ListenUDP(t)
	f := &faulty{PacketConn: p}
	q, err := Listen(s, p, f, codes)
	if err != nil {
		t.Fatal(err)
	}
	end := coretest.Serving(t, q, func() error { return q.Serve(s, e.serve) })
	c := dial(t, addrOf(q))
	f.broken.Store(true)
	said(t, c, "lost")
	eventually.Holds(t, "reading fails", func() bool { return f.failed.Load() > 0 })
	if err := end(); err != nil {
		t.Error(err)
	}
}

// sparse is a socket of which nothing can be had but datagrams for some times.
type sparse struct {
	faulty
	left atomic.Int32
}

func (s *sparse) SyscallConn() (syscall.RawConn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, syscall.ENOMEM
	}
	return s.PacketConn.(syscall.Conn).SyscallConn()
}

// When it cannot be listened anew at once, that is tried again.
func TestListensLater(t *testing.T) {
	logtest.Capture(t)
	s, e := serviceFor(t), newEcho()
	p := coretest.ListenUDP(t)
	f := &sparse{faulty: faulty{PacketConn: p}}
	q, err := Listen(s, p, f, codes)
	if err != nil {
		t.Fatal(err)
	}
	end := coretest.Serving(t, q, func() error { return q.Serve(s, e.serve) })
	c := dial(t, addrOf(q))
	f.left.Store(2)
	f.broken.Store(true)
	said(t, c, "lost")
	eventually.Holds(t, "listening fails", func() bool { return f.left.Load() < 2 })
	f.broken.Store(false)
	if got := said(t, dial(t, addrOf(q)), "again")(); got != answer(s, "again") || f.left.Load() >= 0 {
		t.Errorf("after the fault: got %s", got)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// optionless is a socket that lets nobody set its options.
type optionless struct{ *net.UDPConn }

func (optionless) SyscallConn() (syscall.RawConn, error) { return nil, syscall.ENOPROTOOPT }

// Where the system refuses options that the library wants, packets are read one by one.
func TestListensWithoutOptions(t *testing.T) {
	out := logtest.Capture(t)
	s, e := serviceFor(t), newEcho()
	p := coretest.ListenUDP(t)
	q, err := Listen(s, p, optionless{p}, codes)
	if err != nil {
		t.Fatal(err)
	}
	end := coretest.Serving(t, q, func() error { return q.Serve(s, e.serve) })
	if got := said(t, dial(t, addrOf(q)), "hello")(); got != answer(s, "hello") {
		t.Errorf("got %s", got)
	}
	out.Await(t, "[WARNING] Packets of QUIC at "+addrOf(q)+" are read one by one: protocol not available")
	if err := end(); err != nil {
		t.Error(err)
	}
}
