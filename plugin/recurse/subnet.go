package recurse

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is the client's side of client subnets (RFC 7871). Without the option ecs they mean nothing.

// subnetOf is the network that a client says it is in, as the data of its option with scope 0 and without the bits
// behind the prefix; empty if it tells none, does not want it told (a prefix of 0), or nobody is to be told.
func (r *resolver) subnetOf(q *wire.Query) string {
	if len(r.conf.Subnets) == 0 {
		return ""
	}
	data, ok := q.EDNS().Option(wire.OptionECS)
	if !ok || len(data) < 4 || data[2] == 0 {
		return ""
	}
	bits, most := int(data[2]), 32
	if binary.BigEndian.Uint16(data) == 2 {
		most = 128
	}
	n := (bits + 7) / 8
	if bits > most || len(data) != 4+n {
		return ""
	}
	b := append([]byte(nil), data...)
	b[3] = 0
	if rest := bits % 8; rest > 0 {
		b[len(b)-1] &= 0xff << (8 - rest)
	}
	return string(b)
}

// scope tells a client that told its network for which part of that the answer is good (RFC 7871 §7.2.1).
func (r *resolver) scope(w *wire.Reply, q *wire.Query, res *iterate.Result) {
	subnet := r.subnetOf(q)
	if subnet == "" {
		return
	}
	b := []byte(subnet)
	b[3] = res.Scope
	w.AddOption(wire.OptionECS, b)
}
