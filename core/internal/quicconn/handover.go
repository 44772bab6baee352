//go:build linux

package quicconn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A process that hands its sockets to another one (SIGUSR2) goes on to read those of QUIC until its connections have
// ended: of two that read each would get a part of the other's packets. So it passes on what is not for its own
// connections, and who connects meanwhile is served by the next process at once:
//
//	client ──▶ socket ──▶ transport before ──▶ its own connections
//	                            └──what is for others──▶ handover, a Unix socket ──▶ transport after
//
// The transport after reads the handover until the one before closes it, and from then on the socket. It sends from the
// socket at all times. Where there is no handover, because the system has none or the process before is an older
// program, it waits until that one has ended. A reload in which the next server cannot go on with the connections is
// the same in one process.

// handoverName is the name of the Unix socket by which a process passes on the packets of its socket at an address.
// Only who knows the keys can tell it.
func (k *keys) handoverName(address string, pid int) string {
	h := hmac.New(sha256.New, k.token[:])
	fmt.Fprintf(h, "handover %s %d", address, pid)
	return "@coredns-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// frame is how a packet stands in a handover: the lengths of its parts, and these.
type frame struct{ from, oob, packet []byte }

const frameHeader = 3 * 2

func (f frame) append(b []byte) []byte {
	for _, part := range [...][]byte{f.from, f.oob, f.packet} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(part)))
	}
	return append(append(append(b, f.from...), f.oob...), f.packet...)
}

// lengths are those that a header tells.
func lengths(header []byte) (from, oob, packet int) {
	of := func(i int) int { return int(binary.BigEndian.Uint16(header[2*i:])) }
	return of(0), of(1), of(2)
}
