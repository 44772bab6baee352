package nonblock

import (
	"net"

	"golang.org/x/sys/unix"
)

// QuickAck says whether reads of conn, one of Conn or one above it, as those of crypto/tls are, acknowledge what has
// come before they wait. The system would do so after 40 ms, to save a packet. A peer that gathers small writes (RFC
// 896) may hold back until then what we wait for. Any goroutine may call it.
func QuickAck(conn net.Conn, on bool) {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = above.NetConn()
	}
	if c, ok := conn.(*tcpConn); ok {
		c.reads.acks.Store(on)
	}
}

// acknowledge acknowledges what has come, if that has not been done.
func acknowledge(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) }
