package minimal

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// shorten leaves only the answer section of the reply that w holds, and no OPT record of an upstream.
func shorten(w *wire.Reply) {
	w.DropOPT()
	w.KeepAnswer()
}

// mixed is mixedMsg for the reply that w holds.
func mixed(w *wire.Reply) bool {
	for _, r := range w.Section(wire.Answer) {
		if binary.BigEndian.Uint16(w.Bytes()[r.TTL-2:]) != wire.ClassIN {
			return true
		}
	}
	return false
}
