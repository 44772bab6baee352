// Package systemd takes sockets that a service manager has opened for the process, and tells the manager how it goes.
//
//	LISTEN_PID, LISTEN_FDS ──▶ sockets ──Listener, PacketConn──▶ servers that listen at their addresses
//	NOTIFY_SOCKET ◀──Notify── READY=1, RELOADING=1, STOPPING=1
//
// Both are off where these variables of the environment are not set (sd_listen_fds(3), sd_notify(3)). All functions
// may be called concurrently. Start at Listener.
package systemd

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// first is the descriptor of the first socket that is handed over.
const first = 3

// handed is the sockets that were handed to this process and that nobody has taken yet.
var handed struct {
	once    sync.Once
	mu      sync.Mutex
	streams []net.Listener
	packets []net.PacketConn
}

// Listener is the stream socket that was handed over for addr, host:port without a name; the host may be empty. It is
// nil if there is none. Each socket is given once, and its new owner closes it.
func Listener(addr string) net.Listener {
	load()
	handed.mu.Lock()
	defer handed.mu.Unlock()
	for i, l := range handed.streams {
		if at(l.Addr(), addr) {
			handed.streams = append(handed.streams[:i:i], handed.streams[i+1:]...)
			note(addr)
			return l
		}
	}
	return nil
}

// PacketConn is Listener for datagrams.
func PacketConn(addr string) net.PacketConn {
	load()
	handed.mu.Lock()
	defer handed.mu.Unlock()
	for i, p := range handed.packets {
		if at(p.LocalAddr(), addr) {
			handed.packets = append(handed.packets[:i:i], handed.packets[i+1:]...)
			note(addr)
			return p
		}
	}
	return nil
}

// keptVar is the variable of the environment that has the addresses whose sockets were given by Listener or PacketConn.
// A process that takes the place of this one gets the sockets from it, and this variable, too.
const keptVar = "COREDNS__KEPT_SOCKETS"

// note notes that a socket was given for addr.
func note(addr string) {
	if !Keeps(addr) {
		os.Setenv(keptVar, os.Getenv(keptVar)+" "+addr)
	}
}

// Keeps reports whether the manager has a socket that was given for addr, to this process or to one before it. What
// comes when the process has ended waits there for the next one: nothing may be done to it that outlasts the process.
func Keeps(addr string) bool { return slices.Contains(strings.Fields(os.Getenv(keptVar)), addr) }

// Unused closes the sockets that were handed over and that nobody has taken, and returns their addresses.
func Unused() (addrs []string) {
	load()
	handed.mu.Lock()
	defer handed.mu.Unlock()
	for _, l := range handed.streams {
		addrs = append(addrs, l.Addr().Network()+" "+l.Addr().String())
		l.Close()
	}
	for _, p := range handed.packets {
		addrs = append(addrs, p.LocalAddr().Network()+" "+p.LocalAddr().String())
		p.Close()
	}
	handed.streams, handed.packets = nil, nil
	return addrs
}

// load takes up the descriptors, once. The variables are taken away: processes that this one begins have other ones.
func load() {
	handed.once.Do(func() {
		pid, _ := strconv.Atoi(os.Getenv("LISTEN_PID"))
		n, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
		if pid != os.Getpid() {
			return // they are another process's: an upgraded program has its sockets from its predecessor
		}
		for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
			os.Unsetenv(name)
		}
		for fd := first; fd < first+n; fd++ {
			take(fd)
		}
	})
}

// take takes up one descriptor. One that is no socket of the Internet is closed.
func take(fd int) {
	closeOnExec(fd)
	f := os.NewFile(uintptr(fd), fmt.Sprintf("socket %d", fd))
	if f == nil {
		return
	}
	defer f.Close() // what is made of it is a copy
	if l, err := net.FileListener(f); err == nil {
		if _, ok := l.(*net.TCPListener); ok {
			handed.streams = append(handed.streams, l)
		} else {
			l.Close()
		}
		return
	}
	if p, err := net.FilePacketConn(f); err == nil {
		if _, ok := p.(*net.UDPConn); ok {
			handed.packets = append(handed.packets, p)
		} else {
			p.Close()
		}
	}
}

// at reports whether a socket is bound to addr.
func at(bound net.Addr, addr string) bool {
	b, err := netip.ParseAddrPort(bound.String())
	if err != nil {
		return false
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != strconv.Itoa(int(b.Port())) {
		return false
	}
	if host == "" {
		return b.Addr().IsUnspecified()
	}
	want, err := netip.ParseAddr(host)
	return err == nil && want.Unmap() == b.Addr().Unmap()
}

// Notify tells the manager the state of the process: assignments such as READY=1, one an argument. It does nothing if
// there is no manager that wants to know. The error says what did not work; the process can go on.
func Notify(state ...string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("telling %s of %s: %w", name, state[0], err)
	}
	defer conn.Close()
	var text []byte // one datagram, a line for each assignment
	for _, s := range state {
		text = append(append(text, s...), '\n')
	}
	if _, err := conn.Write(text); err != nil {
		return fmt.Errorf("telling %s of %s: %w", name, state[0], err)
	}
	return nil
}

// Ready tells the manager that the process serves, and that it is the one to watch: it may have taken the place of
// another one.
func Ready() error { return Notify("READY=1", "MAINPID="+strconv.Itoa(syscall.Getpid())) }
