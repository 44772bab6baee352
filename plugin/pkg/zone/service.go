package zone

import (
	"encoding/binary"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Keys of parameters of a service (RFC 9460 §14.3.2).
const (
	keyMandatory     = 0
	keyALPN          = 1
	keyNoDefaultALPN = 2
)

// agrees reports whether the data of an SVCB or HTTPS record agree with themselves (RFC 9460 §7.1.1, §8): the keys
// that are mandatory are there, and where there is no default protocol, another one is named. Clients pass by all
// others, and some servers refuse a zone that has one.
func agrees(rdata []byte) bool {
	if len(rdata) < 2 {
		return false
	}
	n := wire.NameLen(rdata[2:])
	var there, wanted []uint16
	for rest := rdata[2+n:]; len(rest) >= 4; {
		key, size := u16(rest), int(u16(rest[2:]))
		if size > len(rest)-4 {
			return false
		}
		value := rest[4 : 4+size]
		rest = rest[4+size:]
		switch {
		case key == keyMandatory:
			for ; len(value) >= 2; value = value[2:] {
				wanted = append(wanted, binary.BigEndian.Uint16(value))
			}
		case key == keyALPN && size == 0:
			return false
		case key == keyNoDefaultALPN:
			wanted = append(wanted, keyALPN)
		}
		there = append(there, key)
	}
	// Nothing makes itself mandatory.
	return !slices.ContainsFunc(wanted, func(k uint16) bool { return k == keyMandatory || !slices.Contains(there, k) })
}
