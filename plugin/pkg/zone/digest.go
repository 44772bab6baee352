package zone

import (
	"bytes"
	"cmp"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Schemes and hash algorithms of zone digests (RFC 8976 §2.2).
const (
	DigestSimple = 1 // scheme: over the whole zone in canonical order
	DigestSHA384 = 1 // hash algorithms
	DigestSHA512 = 2
)

// Errors of VerifyDigest.
var (
	ErrNoDigest       = errors.New("no ZONEMD record")
	ErrUnknownDigest  = errors.New("no ZONEMD record with scheme SIMPLE and SHA-384 or SHA-512 that stands alone")
	ErrDigestSerial   = errors.New("the ZONEMD record has another serial than the SOA record")
	ErrDigestMismatch = errors.New("the ZONEMD record does not match the zone's data")
)

// Digest is the digest that a ZONEMD record holds (RFC 8976 §3.3). The ZONEMD records at the apex and their
// signatures do not count, so it may be computed before or after they are put in; but a signed zone has to be
// signed before, and its NSEC or NSEC3 record of the apex has to tell of the type ZONEMD already.
func (z *Zone) Digest(scheme, algorithm uint8) ([]byte, error) {
	if scheme != DigestSimple {
		return nil, fmt.Errorf("digest scheme %d is not known: must be %d (SIMPLE)", scheme, DigestSimple)
	}
	var h hash.Hash
	switch algorithm {
	case DigestSHA384:
		h = sha512.New384()
	case DigestSHA512:
		h = sha512.New()
	default:
		return nil, fmt.Errorf("digest algorithm %d is not known: must be %d (SHA-384) or %d (SHA-512)", algorithm, DigestSHA384, DigestSHA512)
	}
	d := digester{z: z, h: h}
	for _, place := range z.ordered() {
		d.node(z.at(place))
	}
	return h.Sum(nil), nil
}

// VerifyDigest compares the zone with its ZONEMD records (RFC 8976 §4, without the DNSSEC validation of step 1). It
// is one of the errors above if that fails, ErrNoDigest if there is nothing to compare with.
func (z *Zone) VerifyDigest() error {
	set := z.apex.Set(wire.TypeZONEMD)
	if set == nil {
		return ErrNoDigest
	}
	number := map[[2]byte]int{}
	for r := set.Records(); len(r) > 0; r = r.Next() {
		if p := r.Data(); len(p) > 6 {
			number[[2]byte(p[4:6])]++
		}
	}
	err := ErrUnknownDigest
	for r := set.Records(); len(r) > 0; r = r.Next() {
		p := r.Data()
		if len(p) <= 6 || number[[2]byte(p[4:6])] > 1 {
			continue
		}
		if u32(p) != z.soa.serial {
			err = ErrDigestSerial
			continue
		}
		sum, unknown := z.Digest(p[4], p[5])
		switch {
		case unknown != nil:
		case bytes.Equal(sum, p[6:]):
			return nil
		default:
			err = ErrDigestMismatch
		}
	}
	return err
}

// digester takes nodes in, record by record in canonical form (RFC 4034 §6.2, §6.3).
type digester struct {
	z     *Zone
	h     hash.Hash
	recs  []canonicalRecord
	rdata []byte
	out   []byte
}

type canonicalRecord struct {
	typ      uint16
	ttl      uint32
	from, to int // in rdata
}

func (d *digester) node(n Node) {
	d.recs, d.rdata = d.recs[:0], d.rdata[:0]
	apex := len(n.prefix()) == 0
	for s := range n.Sets() {
		if apex && s.Type() == wire.TypeZONEMD {
			continue
		}
		d.take(s, apex)
		if sigs := s.Signatures(); sigs != nil {
			d.take(sigs, apex)
		}
	}
	slices.SortFunc(d.recs, func(x, y canonicalRecord) int {
		if x.typ != y.typ {
			return cmp.Compare(x.typ, y.typ)
		}
		return bytes.Compare(d.rdata[x.from:x.to], d.rdata[y.from:y.to])
	})
	for i, r := range d.recs {
		rdata := d.rdata[r.from:r.to]
		if i > 0 && d.recs[i-1].typ == r.typ && bytes.Equal(d.rdata[d.recs[i-1].from:d.recs[i-1].to], rdata) {
			continue // the same but for the case of a name
		}
		d.out = append(append(d.out[:0], n.prefix()...), d.z.origin...)
		d.out = binary.BigEndian.AppendUint16(d.out, r.typ)
		d.out = append(d.out, 0, wire.ClassIN)
		d.out = binary.BigEndian.AppendUint32(d.out, r.ttl)
		d.out = binary.BigEndian.AppendUint16(d.out, uint16(len(rdata)))
		d.h.Write(append(d.out, rdata...))
	}
}

// take gathers the records of an RRset, but signatures of the digest itself.
func (d *digester) take(s RRset, apex bool) {
	for r := s.Records(); len(r) > 0; r = r.Next() {
		from := len(d.rdata)
		d.rdata = r.AppendRData(d.rdata, d.z.origin)
		rdata := d.rdata[from:]
		if apex && s.Type() == wire.TypeRRSIG && u16(rdata) == wire.TypeZONEMD {
			d.rdata = d.rdata[:from]
			continue
		}
		lowerNames(s.Type(), rdata)
		d.recs = append(d.recs, canonicalRecord{s.Type(), r.TTL(), from, len(d.rdata)})
	}
}

// lowerNames makes the names in RDATA lower case that are so in canonical form (RFC 4034 §6.2, RFC 6840 §5.1).
func lowerNames(typ uint16, rdata []byte) {
	lead, names := 0, 1
	switch typ {
	case wire.TypeNS, 3, 4, wire.TypeCNAME, 7, 8, 9, wire.TypePTR, 30, wire.TypeDNAME: // MD MF MB MG MR NXT
	case wire.TypeSOA, 14, 17: // MINFO RP
		names = 2
	case wire.TypeMX, 18, 21, 36: // AFSDB RT KX
		lead = 2
	case 26: // PX
		lead, names = 2, 2
	case wire.TypeSRV:
		lead = 6
	case 24, wire.TypeRRSIG: // SIG
		lead = 18
	case 35: // NAPTR: three strings before the name
		lead = 4
		for range 3 {
			if lead < len(rdata) {
				lead += 1 + int(rdata[lead])
			}
		}
	default:
		return
	}
	for ; names > 0 && lead < len(rdata); names-- {
		n := wire.NameLen(rdata[lead:])
		wire.Lower(rdata[lead:lead+n], rdata[lead:lead+n])
		lead += n
	}
}
