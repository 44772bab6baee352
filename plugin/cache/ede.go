package cache

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Extended DNS errors (RFC 8914) are kept with the answer that they came with. They are not in the packed reply, as only clients with
// EDNS get them.

// maxEDE is how many octets of extended errors go with an answer. Their texts are for people, and anybody may have written them.
const maxEDE = 512

// Extended errors that the cache itself tells, as options.
var (
	edeStale       = wire.AppendEDE(nil, dns.ExtendedErrorCodeStaleAnswer, "")
	edeStaleDenial = wire.AppendEDE(nil, dns.ExtendedErrorCodeStaleNXDOMAINAnswer, "")
	edeCachedError = wire.AppendEDE(nil, dns.ExtendedErrorCodeCachedError, "")
)

// staleEDE is what says that e has ended.
func (e *entry) staleEDE() []byte {
	if e.packed.Rcode() == wire.NXDomain {
		return edeStaleDenial
	}
	return edeStale
}

// edeOf appends the extended errors among options to b, the first ones that are not too long together.
func edeOf(b, options []byte) []byte {
	for len(options) >= 4 {
		end := 4 + int(binary.BigEndian.Uint16(options[2:]))
		if end > len(options) {
			return b
		}
		if binary.BigEndian.Uint16(options) == wire.OptionEDE && end >= 6 && len(b)+end <= maxEDE {
			b = append(b, options[:end]...)
		}
		options = options[end:]
	}
	return b
}

// addEDE puts extended errors into the reply to q, if its client has EDNS and the reply is not cut for them.
func addEDE(w *wire.Reply, q *wire.Query, ede []byte) {
	const opt = 11
	if len(ede) == 0 || !q.EDNS().Present || w.PlainLen()+opt+len(ede) > q.Limit() {
		return
	}
	for len(ede) >= 4 {
		end := 4 + int(binary.BigEndian.Uint16(ede[2:]))
		w.AddOption(wire.OptionEDE, ede[4:end])
		ede = ede[end:]
	}
	w.CountOPT()
}

// edeIn is edeOf for a message's OPT record.
func edeIn(opt *dns.OPT) (b []byte) {
	if opt == nil {
		return nil
	}
	for _, o := range opt.Option {
		if e, ok := o.(*dns.EDNS0_EDE); ok {
			b = edeOf(b, wire.AppendEDE(nil, e.InfoCode, e.ExtraText))
		}
	}
	return b
}
