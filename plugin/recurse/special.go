package recurse

import (
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// specials are zones whose names never leave (RFC 6303, 6761, 6762, 7686, 7793, 8375, 9462, 9476). They are
// answered here as empty: nobody outside can know them, and nobody is to know who asks for them.
type specials struct {
	zones     map[string]bool
	elsewhere map[string]bool // zones that are served from elsewhere, which may lie below those
	tops      map[string]bool // the last labels of zones, with the root's
}

// specialTTL is the TTL of what is answered for them, in seconds.
const specialTTL = 10800

// specialNames are the zones in presentation form.
func specialNames() []string {
	all := strings.Fields(`localhost. invalid. test. onion. alt. home.arpa. local. resolver.arpa.
		10.in-addr.arpa. 168.192.in-addr.arpa. 0.in-addr.arpa. 127.in-addr.arpa. 254.169.in-addr.arpa. 2.0.192.in-addr.arpa.
		100.51.198.in-addr.arpa. 113.0.203.in-addr.arpa. 255.255.255.255.in-addr.arpa. d.f.ip6.arpa. 8.e.f.ip6.arpa. 9.e.f.ip6.arpa.
		a.e.f.ip6.arpa. b.e.f.ip6.arpa. 8.b.d.0.1.0.0.2.ip6.arpa.`)
	for i := 16; i < 32; i++ {
		all = append(all, fmt.Sprintf("%d.172.in-addr.arpa.", i))
	}
	for i := 64; i < 128; i++ {
		all = append(all, fmt.Sprintf("%d.100.in-addr.arpa.", i))
	}
	zeros := strings.Repeat("0.", 31)
	return append(all, "0."+zeros+"ip6.arpa.", "1."+zeros+"ip6.arpa.")
}

// newSpecials is all of them but those that are at or below a zone in except, and of the others what such a zone leaves.
func newSpecials(except []string) specials {
	s := specials{zones: map[string]bool{}, elsewhere: map[string]bool{}, tops: map[string]bool{}}
	for _, text := range specialNames() {
		s.zones[rrset.MustName(text)] = true
	}
	for _, zone := range except {
		s.elsewhere[zone] = true
		for z := range s.zones {
			if rrset.Below(z, zone) {
				delete(s.zones, z)
			}
		}
	}
	for z := range s.zones {
		s.tops[string(top([]byte(z)))] = true
	}
	return s
}

// top is the last label of a name with the root's, or the root.
func top(name []byte) []byte {
	for len(name) > 1 {
		above := wire.Parent(name)
		if len(above) == 1 {
			break
		}
		name = above
	}
	return name
}

// zone is the zone that a lower-case name is in, empty if it is in none.
func (s *specials) zone(name []byte) string {
	if !s.tops[string(top(name))] {
		return ""
	}
	for {
		if s.zones[string(name)] {
			return string(name)
		}
		if len(name) <= 1 || s.elsewhere[string(name)] {
			return ""
		}
		name = wire.Parent(name)
	}
}

const (
	arpa       = "\x04arpa\x00"
	localhost  = "\x09localhost\x00"
	specialSOA = localhost + "\x06nobody\x07invalid\x00" + // MNAME, RNAME
		"\x00\x00\x00\x01" + "\x00\x00\x0e\x10" + "\x00\x00\x04\xb0" + "\x00\x09\x3a\x80" + "\x00\x00\x2a\x30" // serial, 1 h, 20 m, 7 d, 3 h
	loopback4 = "\x7f\x00\x00\x01"
	loopback6 = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
)

// find is what is said of a lower-case name: the zone that it is in, empty if it is in none, and the RDATA of the one
// record of a type, empty if there is none; absent says that there is no such name. The apex has SOA and NS, localhost and
// the names below it are this host, all others do not exist. The DS records of a part that is served from elsewhere are
// theirs (RFC 4035 §3.1.4.1): there are none. Those of a zone below arpa are its parent's, which is asked: without its
// word that the zone is not signed, what is said of it here is bogus to clients that validate (RFC 8375 §4, RFC 6303 §6).
func (s *specials) find(name []byte, typ uint16) (zone, rdata string, absent bool) {
	cut := typ == rrset.TypeDS && s.elsewhere[string(name)]
	if zone = s.zone(name); cut {
		zone = s.zone(wire.Parent(name))
	}
	switch apex := len(name) == len(zone); {
	case apex && typ == rrset.TypeDS && string(top(name)) == arpa:
		return "", "", false
	case zone == localhost && typ == wire.TypeA:
		return zone, loopback4, false
	case zone == localhost && typ == wire.TypeAAAA:
		return zone, loopback6, false
	case apex && typ == wire.TypeSOA:
		return zone, specialSOA, false
	case apex && typ == wire.TypeNS:
		return zone, localhost, false
	default:
		return zone, "", !apex && !cut && zone != localhost
	}
}

// told is the type of the record that a question for a type of a lower-case name is answered with: for ANY, one that is
// there (RFC 8482 §4.1).
func (s *specials) told(name []byte, typ uint16) uint16 {
	switch {
	case typ != rrset.TypeANY:
		return typ
	case s.zone(name) == localhost:
		return wire.TypeA
	}
	return wire.TypeSOA
}

// answer answers q if its name is in one of the zones.
func (s *specials) answer(w *wire.Reply, q *wire.Query) bool {
	typ := s.told(q.Lower(), q.Type())
	zone, rdata, absent := s.find(q.Lower(), typ)
	if zone == "" {
		return false
	}
	w.Begin(q)
	w.SetFlag(wire.FlagRA, true)
	w.SetWriter(pluginName)
	if rdata != "" {
		return w.Record(wire.Answer, q.Name(), typ, wire.ClassIN, specialTTL, []byte(rdata))
	}
	if absent {
		w.SetRcode(wire.NXDomain)
	}
	return w.Record(wire.Authority, []byte(zone), wire.TypeSOA, wire.ClassIN, specialTTL, []byte(specialSOA))
}

// entry is iterate.Config.Inside: where an alias leads into one of the zones, it leads to what is answered here.
func (s *specials) entry(name string, typ uint16) *store.Entry {
	typ = s.told([]byte(name), typ)
	zone, rdata, absent := s.find([]byte(name), typ)
	if zone == "" {
		return nil
	}
	e := &store.Entry{Kind: store.NoData, Zone: zone, TTL: specialTTL, SOA: rrset.New(zone, wire.TypeSOA, specialTTL, specialSOA)}
	switch {
	case rdata != "":
		e.Kind, e.Set = store.Positive, rrset.New(name, typ, specialTTL, rdata)
	case absent:
		e.Kind = store.NXDomain
	}
	return e
}
