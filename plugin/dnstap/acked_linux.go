package dnstap

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unheard reports whether the system has sent what was written to conn so many times again, each time after it had
// waited twice as long, and nothing was acknowledged. A peer that is slow acknowledges what it does not read.
func unheard(conn net.Conn, times uint8) bool {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	var info *unix.TCPInfo
	failed := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if failed != nil || err != nil {
		return false // it is no TCP
	}
	return info.Retransmits >= times
}
