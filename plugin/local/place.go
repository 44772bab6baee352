package local

import (
	"bytes"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// What stands in the local zones.
const ttl = 7 * 86400 // seconds

var (
	localhost = wire.MustName("localhost.")
	oneOf127  = wire.MustName("1.0.0.127.in-addr.arpa.")
	reverse   = [...][]byte{wire.MustName("127.in-addr.arpa."), wire.MustName("0.in-addr.arpa."), wire.MustName("255.in-addr.arpa.")}
	arpa      = wire.MustName("in-addr.arpa.")

	soa = wire.SOA{MName: localhost, RName: wire.MustName("root.localhost."), Serial: 1, Minimum: ttl}
)

// place is where a name stands among the local ones.
type place uint8

const (
	elsewhere place = iota
	apexHost        // localhost
	host            // a name below it, or one that begins with it
	apex            // a reverse zone
	loopback        // 1.0.0.127.in-addr.arpa
	missing         // another name of a reverse zone
)

// place finds the place of a lower name, and the zone that speaks for it; a host speaks for itself.
func (l Local) place(name []byte) (place, []byte) {
	switch {
	case bytes.Equal(name, localhost):
		return apexHost, name
	case wire.Below(name, localhost):
		return host, name
	case !l.noPrefix && bytes.HasPrefix(name, localhost[:len(localhost)-1]):
		return host, name
	case !wire.Below(name, arpa):
		return elsewhere, nil
	case bytes.Equal(name, oneOf127):
		return loopback, reverse[0]
	}
	for _, zone := range reverse {
		if bytes.Equal(name, zone) {
			return apex, zone
		}
		if wire.Below(name, zone) {
			return missing, zone
		}
	}
	return elsewhere, nil
}
