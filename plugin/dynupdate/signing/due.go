package signing

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

// This file finds what is not as the signer has it, or ends soon.

// Due is the names at which something is to be made right, and whether that is the whole zone: if its keys are others
// than the signer's, or denials of another kind.
func (g *Signer) Due(v *zone.Zone, now time.Time) (names [][]byte, whole bool) {
	apex, _ := v.NodeAt(g.origin)
	whole = !g.holds(v, apex)
	for name, n := range v.Nodes() {
		if whole || g.isDue(n, now) {
			names = append(names, slices.Clone(name))
		}
	}
	return names, whole
}

// holds reports whether a version is signed as the signer does it: with its keys, and denials of its kind.
func (g *Signer) holds(v *zone.Zone, apex zone.Node) bool {
	return g.sameKeys(v, apex) && (len(g.keys) == 0 || g.hasChain(apex))
}

// sameKeys reports whether the keys at the apex are the signer's.
func (g *Signer) sameKeys(v *zone.Zone, apex zone.Node) bool {
	set := apex.Set(dns.TypeDNSKEY)
	if set == nil || len(g.keys) == 0 {
		return set == nil && len(g.keys) == 0
	}
	found := 0
	for r := set.Records(); len(r) > 0; r = r.Next() {
		rr, err := zone.Record{Owner: g.origin, Type: dns.TypeDNSKEY, RData: r.AppendRData(nil, v.Origin())}.RR()
		if err != nil {
			return false
		}
		key := rr.(*dns.DNSKEY) // two may have the same tag
		if !slices.ContainsFunc(g.keys, func(k zonekeys.Pair) bool {
			return k.Public.PublicKey == key.PublicKey && k.Public.Algorithm == key.Algorithm && k.Public.Flags == key.Flags
		}) {
			return false
		}
		found++
	}
	return found == len(g.keys)
}

// isDue reports whether a signature at a name is to be made anew.
func (g *Signer) isDue(n zone.Node, now time.Time) bool {
	for set := range n.Sets() {
		for r := set.Signatures().Records(); len(r) > 0; r = r.Next() {
			if g.stale(r.Data(), now) {
				return true
			}
		}
	}
	return false
}

// stale reports whether a signature is to be made anew, by its RDATA (RFC 4034 §3.1).
func (g *Signer) stale(sig []byte, now time.Time) bool {
	if len(sig) < 18 {
		return true
	}
	expiration, inception := binary.BigEndian.Uint32(sig[8:]), binary.BigEndian.Uint32(sig[12:])
	if !zone.Newer(expiration, uint32(now.Add(renewBefore).Unix())) || zone.Newer(inception, uint32(now.Unix())) {
		return true
	}
	tag := binary.BigEndian.Uint16(sig[16:])
	return !slices.ContainsFunc(g.keys, func(k zonekeys.Pair) bool { return k.KeyTag == tag && k.Public.Algorithm == sig[2] })
}
