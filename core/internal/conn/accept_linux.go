package conn

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	"github.com/coredns/coredns/plugin/pkg/sockcall"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"golang.org/x/sys/unix"
)

// closedCheck is how often is looked whether somebody else has closed a listener, of which epoll does not tell.
const closedCheck = time.Second

// acceptor accepts the connections of a listener in the turns of its first reader.
type acceptor struct {
	listener *Listener
	handler  Handler
	raw      syscall.RawConn
	local    netip.AddrPort // of all its connections; not valid if each has one of its own
	reader   *reader
	accept   func(fd uintptr)

	// of the connection that was accepted last
	fd   int
	peer unix.RawSockaddrInet6
	err  syscall.Errno

	mu      sync.Mutex
	index   int32
	watched bool // the reader tells of new connections
	over    bool // and will not any more
}

// serveLight is Serve without goroutines for connections, as long as they need none. It reports false if that cannot
// be done for from.
func (l *Listener) serveLight(from net.Listener, h Handler) (served bool) {
	t, ok := from.(*net.TCPListener)
	if !ok || h.Turn == nil || h.TLS != nil || !l.Now().Wire {
		return false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return false
	}
	a := &acceptor{listener: l, handler: h, raw: raw, reader: l.readers.first(l)}
	if a.reader == nil {
		return false
	}
	if at := t.Addr().(*net.TCPAddr).AddrPort(); !at.Addr().IsUnspecified() {
		a.local = unmapped(at)
	}
	a.accept = a.acceptOne
	// Connections have it from their listener.
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) })
	gone := l.gone(from, a.end)
	defer a.end()
	if !a.watch() {
		return false
	}
	for {
		select {
		case <-gone:
			return true
		case <-time.After(closedCheck):
			if raw.Control(func(uintptr) {}) != nil {
				return true
			}
		}
	}
}

// watch has the reader tell of new connections. It reports whether it does.
func (a *acceptor) watch() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over && !a.watched {
		var err error
		cerr := a.raw.Control(func(fd uintptr) { a.index, err = a.reader.set.Add(int(fd), a) })
		a.watched = cerr == nil && err == nil
	}
	return a.watched
}

// pause has the reader tell of none until the next watch.
func (a *acceptor) pause() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watched {
		a.watched = false
		a.raw.Control(func(fd uintptr) { a.reader.set.Forget(int(fd), a.index) })
	}
}

// end has the reader tell of none any more. It is called before the listener is closed: the next server's descriptor
// is of the same socket, of which epoll would go on to tell.
func (a *acceptor) end() {
	a.pause()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
}

// read implements readable: it accepts a connection. Of the next one the reader tells at its next look.
func (a *acceptor) read(r *reader) {
	if a.raw.Control(a.accept) != nil { // it is closed
		a.err = unix.EBADF
		return
	}
	switch a.err {
	case 0:
		a.begin(r)
	case unix.EAGAIN, unix.ECONNABORTED: // somebody else was faster, or the client has gone
	default: // such as no file descriptors: it may pass
		a.listener.tell(os.NewSyscallError("accept4", a.err))
		a.pause()
		time.AfterFunc(acceptErrorPause, a.resume)
	}
}

// resume has the reader tell of new connections again, as soon as the system lets it.
func (a *acceptor) resume() {
	a.mu.Lock()
	over := a.over
	a.mu.Unlock()
	if !over && !a.watch() {
		time.AfterFunc(acceptErrorPause, a.resume)
	}
}

// readRest accepts those of which the system has told its clients already that they are connected.
func (a *acceptor) readRest(r *reader) {
	for a.err = 0; a.err == 0 && time.Since(r.now) < service.DrainTime; r.end() {
		a.read(r)
	}
}

// acceptOne accepts a connection of the listener's descriptor.
func (a *acceptor) acceptOne(listener uintptr) {
	a.fd, a.err = sockcall.Accept(listener, &a.peer)
}

// begin admits the connection that was accepted, and serves what has come already.
func (a *acceptor) begin(r *reader) {
	l := a.listener
	client, local := unmapped(mmsg.AddrPort(&a.peer)), a.local
	if !local.IsValid() {
		local = localOf(a.fd)
	}
	if l.admission.Full() {
		a.admit(nonblock.Adopt(a.fd, net.TCPAddrFromAddrPort(local), net.TCPAddrFromAddrPort(client)))
		return
	}
	c := &Light{light: light{fd: a.fd, handler: a.handler}}
	c.Peer = wire.Peer{Client: client, Local: local, Proto: wire.TCP, Limit: wire.MaxMessage, Plain: true}
	c.last.Store(service.At(r.now))
	if c.slot = l.admission.Enter(client.Addr(), c, 0); c.slot == nil {
		nonblock.Close(a.fd)
		return
	}
	r.serve(c)
}

// admit has another goroutine admit a connection, for which that may have to wait; meanwhile others wait in the
// backlog.
func (a *acceptor) admit(nc net.Conn) {
	a.pause()
	a.listener.done.Add(1)
	go func() {
		defer a.listener.done.Done()
		a.listener.admit(nc, a.handler)
		a.resume()
	}()
}

// localOf is our address of a connection.
func localOf(fd int) netip.AddrPort {
	var name unix.RawSockaddrInet6
	sockcall.Name(uintptr(fd), &name)
	return unmapped(mmsg.AddrPort(&name))
}

// unmapped is a, of IPv4 also where the system has it as one of IPv6.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
