package quicconn

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
)

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

// into puts the packet into m. It reports 1 if that has come about, else 0.
func (f frame) into(m *ipv4.Message) int {
	var from netip.AddrPort
	if from.UnmarshalBinary(f.from) != nil {
		return 0
	}
	m.N, m.NN, m.Flags = copy(m.Buffers[0], f.packet), copy(m.OOB, f.oob), 0
	m.Addr = net.UDPAddrFromAddrPort(from)
	return 1
}
