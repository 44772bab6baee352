package kubernetes

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Times of the SOA record, in seconds.
const (
	soaTTL     = 300 // at most
	soaRefresh = 7200
	soaRetry   = 1800
	soaExpire  = 86400
)

// The labels of the server's and of the mailbox's name; a pointer to the zone's name follows each.
const (
	soaServer  = "\x02ns\x03dns"
	soaMailbox = "\x0ahostmaster"
)

// soaFix is where the two pointers stand in the RDATA.
var soaFix = []byte{0, byte(len(soaServer)), 0, byte(len(soaServer) + 2 + len(soaMailbox))}

// soa adds the zone's SOA record.
func (a *answer) soa(s wire.Section) {
	var buf [64]byte
	b := append(append(buf[:0], soaServer...), 0, 0)
	b = append(append(b, soaMailbox...), 0, 0)
	for _, v := range [...]uint32{a.serial(), soaRefresh, soaRetry, soaExpire, a.ttl} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	zone := wire.Owner{Pointer: 0xC000 | uint16(wire.HeaderLen+a.at), Len: len(a.zone.name)}
	plain := len(b) - 4 + 2*len(a.zone.name)
	a.w.Relative(s, zone, wire.TypeSOA, min(a.ttl, soaTTL), b, soaFix, zone.Pointer, plain)
}

// serial is the zone's serial, which the connection to the API knows, also one of somebody else's.
func (a *answer) serial() uint32 {
	switch {
	case a.conn == nil:
		return 0
	case a.zone.multicluster:
		return uint32(a.conn.Modified(ModifiedMultiCluster))
	}
	return uint32(a.conn.Modified(ModifiedInternal))
}
