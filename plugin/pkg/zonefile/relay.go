package zonefile

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// AMTRELAY records (RFC 8777 §4) are read here: miekg/dns leaves out the relay where the bit for optional discovery
// stands before its type.

// optionalDiscovery is that bit.
const optionalDiscovery = 0x80

// appendRelay appends PRECEDENCE DISCOVERY TYPE RELAY.
func appendRelay(b []byte, words []word, origin []byte) ([]byte, error) {
	if len(words) != 4 {
		return b, fmt.Errorf("%d fields where 4 are needed: PRECEDENCE DISCOVERY TYPE RELAY", len(words))
	}
	var n [3]uint64
	for i, limit := range [...]uint64{255, 1, 3} {
		var ok bool
		if n[i], ok = parseNumber(words[i].text, limit); !ok {
			return b, badNumber(words[i].text, limit)
		}
	}
	b = append(b, byte(n[0]), byte(n[1])*optionalDiscovery|byte(n[2]))
	relay := words[3].text
	switch n[2] {
	case 0:
		if string(relay) != "." {
			return b, fmt.Errorf("bad relay %q: must be . with type 0", relay)
		}
		return b, nil
	case 3:
		return appendField(b, 'n', words[3], origin)
	}
	a, err := netip.ParseAddr(string(relay))
	if err != nil || a.Zone() != "" || a.Is4() != (n[2] == 1) {
		return b, fmt.Errorf("bad relay %q: must be an IPv4 address with type 1, an IPv6 address with type 2", relay)
	}
	return append(b, a.AsSlice()...), nil
}

// checkRelay is an error if data is not of the form of an AMTRELAY record.
func checkRelay(data []byte) error {
	if len(data) >= 2 {
		length := -1
		switch rest := data[2:]; data[1] &^ optionalDiscovery {
		case 0:
			length = 0
		case 1:
			length = 4
		case 2:
			length = 16
		case 3:
			if n := wire.NameLen(rest); n > 0 {
				length = n
			}
		}
		if len(data)-2 == length {
			return nil
		}
	}
	return errors.New("bad data")
}
