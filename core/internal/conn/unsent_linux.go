package conn

import (
	"net"

	"golang.org/x/sys/unix"
)

// mostUnsent is how many octets the system takes for a connection beyond those that are on their way, before it says
// that it takes no more. By itself it takes up to 4 MiB, and says that it takes more again when a third of them is
// gone: a client that is slow, and reads on, would seem to take nothing for longer than it may.
const mostUnsent = 128 << 10

// littleUnsent has the system keep little for each connection that is accepted from l.
func littleUnsent(l net.Listener) {
	if raw, err := rawOf(l); err == nil {
		_ = raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, mostUnsent) })
	}
}
