package forward

import (
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// zones is the names that are forwarded: from and what lies below it, without the except zones. All are in
// lower case.
type zones struct {
	from   []byte
	except [][]byte
}

// match reports whether q is to be forwarded.
func (z *zones) match(q *wire.Query) bool { return z.cover(q.Lower()) }

// matchMsg is match for a message.
func (z *zones) matchMsg(r *dns.Msg) bool {
	if len(r.Question) == 0 {
		return z.cover(wire.Root)
	}
	var buf [wire.MaxName + 1]byte
	name, err := wire.AppendName(buf[:0], r.Question[0].Name)
	if err != nil {
		return false
	}
	wire.Lower(name, name)
	return z.cover(name)
}

// cover decides about a lower-case name. The zone's own name is never excepted.
func (z *zones) cover(name []byte) bool {
	if !wire.Below(name, z.from) {
		return false
	}
	if len(name) == len(z.from) {
		return true
	}
	for _, zone := range z.except {
		if wire.Below(name, zone) {
			return false
		}
	}
	return true
}
