package transfer

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin"
)

// stanza is one transfer directive: who may have which zones, and is notified of their changes.
type stanza struct {
	zones  []string // fully qualified and in lower case
	to     []target
	source netip.Addr // of notifications; the zero Addr leaves it to the system
	key    tsigKey    // that notifications are signed with
}

// target is a client that may transfer.
type target struct {
	any  bool // any client may; there is nobody to notify
	addr netip.AddrPort
}

func (t target) String() string {
	if t.any {
		return "*"
	}
	return t.addr.String()
}

// tsigKey is a key's name, "" for none, and its algorithm, "" for the key's own.
type tsigKey struct{ name, algorithm string }

// stanzaOf is the stanza with the longest zone that name is or lies below, nil if there is none. Of several with the
// same zone it is the first.
func (t *Transfer) stanzaOf(name string) (best *stanza) {
	longest := ""
	for _, s := range t.stanzas {
		if zone := plugin.Zones(s.zones).Matches(name); len(zone) > len(longest) {
			longest, best = zone, s
		}
	}
	return best
}

// Has reports whether somebody may transfer a zone, whose name is fully qualified and in lower case.
func (t *Transfer) Has(zone string) bool { return t.stanzaOf(zone) != nil }

// allows reports whether a client may transfer. Its port does not count.
func (s *stanza) allows(client netip.Addr) bool {
	client = plain(client)
	return slices.ContainsFunc(s.to, func(t target) bool { return t.any || plain(t.addr.Addr()) == client })
}

// plain is an address as it is compared: without a zone, and not IPv4-mapped.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
