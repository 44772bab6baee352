package cache

import (
	"encoding/binary"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// network is the addresses that an EDNS client subnet option names (RFC 7871 §6). The zero network is that of a
// query without the option.
type network struct {
	asked  bool   // there is such an option
	family uint8  // 1 is IPv4, 2 IPv6, 0 neither: then there are no bits
	bits   uint8  // length of the prefix
	hi, lo uint64 // the prefix from its first bit on, zero behind it
}

// readNetwork reads the data of an option. scope is the prefix length that a reply gives to it.
func readNetwork(data []byte) (n network, scope uint8, ok bool) {
	if len(data) < 4 {
		return n, 0, false
	}
	family, bits := binary.BigEndian.Uint16(data), data[2]
	longest := [...]uint8{0, 32, 128}
	if int(family) >= len(longest) || bits > longest[family] || data[3] > longest[family] {
		return n, 0, false
	}
	var b [16]byte
	copy(b[:], data[4:])
	n = network{asked: true, family: uint8(family), hi: binary.BigEndian.Uint64(b[:]), lo: binary.BigEndian.Uint64(b[8:])}
	return n.cut(bits), data[3], true
}

// networkOf is the network that the options of a query name. It reports false if they name several, or none that can be
// told.
func networkOf(e *wire.EDNS) (n network, ok bool) {
	if e.Set&(wire.HasECS|wire.HasOther) == 0 {
		return n, true
	}
	for b := e.Options; len(b) >= 4; {
		end := min(4+int(binary.BigEndian.Uint16(b[2:])), len(b))
		if binary.BigEndian.Uint16(b) == wire.OptionECS {
			if n.asked {
				return n, false
			}
			if n, _, ok = readNetwork(b[4:end]); !ok {
				return n, false
			}
		}
		b = b[end:]
	}
	return n, true
}

// cut is the network of the first bits of n, which has no fewer.
func (n network) cut(bits uint8) network {
	n.bits = bits
	if bits <= 64 {
		n.hi &= ^uint64(0) << (64 - bits)
		n.lo = 0
	} else {
		n.lo &= ^uint64(0) << (128 - bits)
	}
	return n
}

// String is the network in CIDR notation, "" if there are no addresses.
func (n network) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], n.hi)
	binary.BigEndian.PutUint64(b[8:], n.lo)
	switch n.family {
	case 1:
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(b[:4])), int(n.bits)).String()
	case 2:
		return netip.PrefixFrom(netip.AddrFrom16(b), int(n.bits)).String()
	}
	return ""
}

// covers reports whether all addresses of o are addresses of n.
func (n *network) covers(o *network) bool {
	return n.family == o.family && n.bits <= o.bits && o.cut(n.bits) == *n
}

// hash is a number that differs for different networks, most of the time.
func (n *network) hash() uint64 {
	if !n.asked {
		return 0
	}
	h := (n.hi ^ uint64(n.bits)<<1 ^ uint64(n.family)) * 0x9E3779B97F4A7C15
	h = (h ^ h>>29 ^ n.lo) * 0xD6E8FEB86659FD93
	return h ^ h>>32
}

// ecsScope is whom an answer is for.
type ecsScope struct {
	net      network // the clients of it, if that is asked; else those that name no network
	exact    bool    // of these only who names just this network
	everyone bool    // it is for all clients, whether they name a network or not
	told     bool    // the reply has said so, and with which prefix length
	bits     uint8   //
}

// scopeOf decides whom the answer to a query from n is for (RFC 7871 §7.3), by the option that the reply has, if it has
// one. It reports false if the answer is nothing for others.
//
// An answer that says nothing of networks may have been made for one all the same: it is only for those who name the
// same.
func (n network) scopeOf(option []byte, present bool) (r ecsScope, ok bool) {
	if !present {
		return ecsScope{net: n, exact: n.asked}, true
	}
	told, scope, ok := readNetwork(option)
	switch {
	case !ok:
		return r, false
	case !n.asked:
		return r, scope == 0
	case told != n && !(n.bits == 0 && told.bits == 0): // not the answer to this query
		return r, false
	case scope == 0:
		return ecsScope{everyone: true, told: true}, true
	case scope > n.bits: // a longer prefix would have got a better answer
		return ecsScope{net: n, exact: true, told: true, bits: scope}, true
	}
	return ecsScope{net: n.cut(scope), told: true, bits: scope}, true
}

// scopeTold is what e has to tell clients that name a network of whom it is for.
func (e *entry) scopeTold() (r ecsScope) {
	switch {
	case e.forAll:
		r = ecsScope{everyone: true, told: true}
	case e.extra != nil:
		r = e.extra.scope
	}
	return r
}

// addScope tells the client of q whom the reply is for, if the reply has told us, and the client has named a network:
// it may be a resolver that keeps the answer (RFC 7871 §7.2.2).
func addScope(w *wire.Reply, q *wire.Query, r ecsScope) {
	e := q.EDNS()
	if !r.told || e.Set&(wire.HasECS|wire.HasOther) == 0 {
		return
	}
	if n, ok := networkOf(e); ok && n.asked {
		var room [4 + 16]byte
		w.AddOption(wire.OptionECS, n.append(room[:0], r.bits))
		w.CountOPT()
	}
}

// append appends the data of an option that names n, with a scope.
func (n network) append(b []byte, scope uint8) []byte {
	b = append(b, 0, n.family, n.bits, scope)
	end := len(b) + (int(n.bits)+7)/8
	b = binary.BigEndian.AppendUint64(b, n.hi)
	return binary.BigEndian.AppendUint64(b, n.lo)[:end]
}

// withoutECS is options without those that name a client subnet, in memory of its own.
func withoutECS(options []byte) []byte {
	out := make([]byte, 0, len(options))
	for b := options; len(b) >= 4; {
		end := min(4+int(binary.BigEndian.Uint16(b[2:])), len(b))
		if binary.BigEndian.Uint16(b) != wire.OptionECS {
			out = append(out, b[:end]...)
		}
		b = b[end:]
	}
	return out
}
