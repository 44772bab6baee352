package throttle

import (
	"encoding/binary"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// fingerprint is what makes replies alike: their kind, and the name that they are about. Who asks for ever new names that do
// not exist gets replies about one zone.
type fingerprint struct {
	kind reason
	name []byte // lower
	typ  uint16
}

// fingerprintOf is that of what w holds as the reply to q. A name that is not q's is appended to b.
func fingerprintOf(w *wire.Reply, q *wire.Query, b []byte) fingerprint {
	if !w.Holds() {
		return fingerprint{kind: byErrors}
	}
	var zone, cut []byte
	if w.Count(wire.Answer) == 0 {
		for _, r := range w.Section(wire.Authority) {
			switch {
			case r.Type == wire.TypeSOA && zone == nil:
				zone, _ = wire.AppendNameAt(b, w.Bytes(), int(r.Off))
				wire.Lower(zone, zone)
			case r.Type == wire.TypeNS && zone == nil && cut == nil:
				cut, _ = wire.AppendNameAt(b, w.Bytes(), int(r.Off))
				wire.Lower(cut, cut)
			}
		}
	}
	return sort(w.Rcode(), zone, cut, q.Lower(), q.Type())
}

// fingerprintOfMsg is the same for a message that replies to r.
func fingerprintOfMsg(m, r *dns.Msg) fingerprint {
	var zone, cut []byte
	if len(m.Answer) == 0 {
		for _, rr := range m.Ns {
			switch h := rr.Header(); {
			case h.Rrtype == dns.TypeSOA && zone == nil:
				zone, _ = wire.LowerName(h.Name)
			case h.Rrtype == dns.TypeNS && cut == nil:
				cut, _ = wire.LowerName(h.Name)
			}
		}
	}
	asked, _ := wire.LowerName(r.Question[0].Name)
	return sort(m.Rcode, zone, cut, asked, r.Question[0].Qtype)
}

// sort sorts a reply to a query for a name and type. If it has no answer, zone is the owner of an SOA record in its authority section, and
// cut of NS records, nil if there are none.
func sort(rcode int, zone, cut, asked []byte, typ uint16) fingerprint {
	switch {
	case rcode == wire.NXDomain, rcode == wire.Success && zone != nil:
		return fingerprint{kind: byDenials, name: zone}
	case rcode != wire.Success:
		return fingerprint{kind: byErrors}
	case cut != nil:
		return fingerprint{kind: byResponses, name: cut, typ: wire.TypeNS}
	}
	return fingerprint{kind: byResponses, name: asked, typ: typ}
}

// key is the account of a network for such replies.
func (f fingerprint) key(network netip.Addr) uint64 {
	var b [16 + 8 + 2 + 1]byte
	a := network.As16()
	copy(b[:], a[:])
	if len(f.name) > 0 {
		binary.LittleEndian.PutUint64(b[16:], wire.Hash(f.name))
	}
	binary.LittleEndian.PutUint16(b[24:], f.typ)
	b[26] = byte(f.kind)
	return wire.Hash(b[:])
}

// v6Client is how many bits of an IPv6 address tell a client: it has a network of its own.
const v6Client = 64

// clientKey is the account of a client for queries. What may be forged has one of its own, so that nobody uses up that of another one.
func clientKey(a netip.Addr, forgeable bool) uint64 {
	if a.Is6() {
		a = masked(a, v6Client)
	}
	var b [16 + 1]byte
	as16 := a.As16()
	copy(b[:], as16[:])
	if forgeable {
		b[16] = 1
	}
	return wire.Hash(b[:])
}

// masked is the first address of the network of a.
func masked(a netip.Addr, bits int) netip.Addr {
	p, err := a.WithZone("").Prefix(bits)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}
