package minimal

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

func hasSOA(w *wire.Reply) bool {
	for _, r := range w.Section(wire.Authority) {
		if r.Type == wire.TypeSOA {
			return true
		}
	}
	return false
}

// answers reports whether the answer section leads from q's name, along aliases that neither fork nor go round, to a
// record of the type asked for.
func answers(w *wire.Reply, q *wire.Query) bool {
	var buf [2][wire.MaxName + 1]byte
	name := append(buf[0][:0], q.Lower()...)
	for i := range w.Count(wire.Answer) + 1 {
		next, found := step(w, q, name, buf[(i+1)%2][:0])
		if found || next == nil {
			return found
		}
		name = next
	}
	return false // more steps than records: a circle
}

// step looks for the records at a lower name: one of the type asked for, or else an alias, whose target is appended to b
// in lower case. next is nil if there is neither, or if aliases lead to several names.
func step(w *wire.Reply, q *wire.Query, name, b []byte) (next []byte, found bool) {
	msg := w.Bytes()
	for _, r := range w.Section(wire.Answer) {
		var nb [wire.MaxName + 1]byte
		if owner, ok := wire.AppendNameAt(nb[:0], msg, int(r.Off)); !ok || !wire.EqualFold(owner, name) {
			continue
		}
		if q.Type() == wire.TypeANY || q.Type() == r.Type && r.Type != wire.TypeCNAME {
			return nil, true
		}
		if r.Type != wire.TypeCNAME {
			continue
		}
		target, ok := wire.AppendNameAt(nb[:0], msg, int(r.TTL)+6)
		if !ok || next != nil && !wire.EqualFold(target, next) {
			return nil, false
		}
		next = append(b[:0], target...)
		wire.Lower(next, next)
	}
	return next, next != nil && q.Type() == wire.TypeCNAME
}
