package validate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha1" // registers SHA-1
	_ "crypto/sha256"
	_ "crypto/sha512"
	"math/big"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/resolver/p256"

	"github.com/miekg/dns"
)

// Flags of DNSKEY records (RFC 4034 §2.1.1, RFC 5011 §2.1).
const (
	flagZone   = 0x0100
	flagRevoke = 0x0080
)

// key is a DNSKEY record.
type key struct {
	rdata     string
	flags     uint16
	algorithm uint8
	tag       uint16
	public    crypto.PublicKey // nil if the key is none that can be used
	quick     *p256.Key        // the same as public, nil if it is of another curve or kind
	odd       bool             // it is a good one, of a size that is not served
}

// parseKey reads the RDATA of a DNSKEY record; nil if it is malformed or of
// another protocol than 3.
func parseKey(rdata string) *key {
	if len(rdata) < 5 || rdata[2] != 3 {
		return nil
	}
	k := &key{rdata: rdata, flags: uint16(rdata[0])<<8 | uint16(rdata[1]), algorithm: rdata[3], tag: keyTag(rdata)}
	k.public, k.odd = publicKey(k.algorithm, rdata[4:])
	if e, ok := k.public.(*ecdsa.PublicKey); ok {
		k.quick, _ = p256.New(e)
	}
	return k
}

// signs reports whether the key may sign what is in a zone.
func (k *key) signs() bool { return k.flags&flagZone != 0 && k.flags&flagRevoke == 0 }

// keyTag is the tag of a DNSKEY's RDATA (RFC 4034 appendix B; algorithm 1 is
// not served).
func keyTag(rdata string) uint16 {
	sum := uint32(0)
	for i := range len(rdata) {
		if i%2 == 0 {
			sum += uint32(rdata[i]) << 8
		} else {
			sum += uint32(rdata[i])
		}
	}
	return uint16(sum + sum>>16)
}

// publicKey reads a public key; odd tells that it is one, but of a size that is not served.
func publicKey(algorithm uint8, b string) (k crypto.PublicKey, odd bool) {
	switch algorithm {
	case dns.RSASHA1, dns.RSASHA1NSEC3SHA1:
		return rsaKey(b, leastOldRSA)
	case dns.RSASHA256, dns.RSASHA512:
		return rsaKey(b, leastRSA)
	case dns.ECDSAP256SHA256:
		return ecdsaKey(elliptic.P256(), b), false
	case dns.ECDSAP384SHA384:
		return ecdsaKey(elliptic.P384(), b), false
	case dns.ED25519:
		if len(b) == ed25519.PublicKeySize {
			return ed25519.PublicKey(b), false
		}
	case dns.ED448:
		if len(b) == ed448Octets {
			return ed448Key(b), false
		}
	}
	return nil, false
}

// Sizes of RSA keys that are used, in bits: smaller ones prove little, larger
// ones cost much. Who has SHA-1 validated at all gets the sizes of its time.
const (
	leastOldRSA = 512 // RFC 3110 §3, with SHA-1
	leastRSA    = 1024
	mostRSA     = 4096
)

// rsaKey reads a key of so many bits at least, in the form of RFC 3110 §2. Exponents of more than 31 bits are served no
// more than moduli that are too small or too large.
func rsaKey(b string, least int) (k crypto.PublicKey, odd bool) {
	if len(b) < 3 {
		return nil, false
	}
	n := int(b[0])
	b = b[1:]
	if n == 0 {
		n = int(b[0])<<8 | int(b[1])
		b = b[2:]
	}
	if n == 0 || n >= len(b) {
		return nil, false
	}
	e, mod := new(big.Int).SetBytes([]byte(b[:n])), new(big.Int).SetBytes([]byte(b[n:]))
	if mod.Bit(0) == 0 || e.Bit(0) == 0 || e.BitLen() < 2 {
		return nil, false
	}
	if bits := mod.BitLen(); bits < least || bits > mostRSA || e.BitLen() > 31 {
		return nil, true
	}
	return &rsa.PublicKey{N: mod, E: int(e.Int64())}, false
}

// ecdsaKey reads a point without compression (RFC 6605 §4).
func ecdsaKey(curve elliptic.Curve, b string) crypto.PublicKey {
	k, err := ecdsa.ParseUncompressedPublicKey(curve, append([]byte{4}, b...))
	if err != nil { // a nil pointer would be no nil interface
		return nil
	}
	return k
}

// The standard library refuses what is no signature: points off the curve, numbers out
// of range, wrong padding. Lengths are checked before, as RFC 6605 §4 and RFC 8080 §4
// have them.

// verify reports whether sig is the key's signature of data.
func (k *key) verify(data []byte, sig string) bool {
	switch p := k.public.(type) {
	case *rsa.PublicKey:
		h := hashes[k.algorithm]
		if p.N.BitLen() < leastRSA { // which the standard library refuses
			return smallRSA(p, h, digest(h, data), sig)
		}
		return rsa.VerifyPKCS1v15(p, h, digest(h, data), []byte(sig)) == nil
	case *ecdsa.PublicKey:
		n := (p.Curve.Params().BitSize + 7) / 8
		if len(sig) != 2*n {
			return false
		}
		sum, r, s := digest(hashes[k.algorithm], data), sig[:n], sig[n:]
		return k.quick != nil && k.quick.Holds(sum, r, s) || ecdsa.VerifyASN1(p, sum, derOf(r, s))
	case ed25519.PublicKey:
		return len(sig) == ed25519.SignatureSize && ed25519.Verify(p, data, []byte(sig))
	case ed448Key:
		return p.verify(data, sig)
	}
	return false
}

// weight is how many checks a signature by the key counts as. One by P-384 takes 0.6 ms, by RSA with 4096 bits 0.4 ms,
// and 1.2 ms if the exponent has as many bits as it may. By Ed448 it takes 0.2 ms, by others less.
func (k *key) weight() int {
	switch p := k.public.(type) {
	case *rsa.PublicKey:
		if p.N.BitLen() > 2048 {
			if p.E > 1<<17 {
				return 4
			}
			return 2
		}
	case *ecdsa.PublicKey:
		if p.Curve == elliptic.P384() {
			return 2
		}
	}
	return 1
}

// derOf is an ECDSA signature as the standard library takes it: a SEQUENCE of two INTEGERs (X.690 §8.3, RFC 3279
// §2.2.3).
func derOf(r, s string) []byte {
	b := make([]byte, 2, 2+2*(len(r)+3))
	for _, n := range [...]string{r, s} {
		n = strings.TrimLeft(n, "\x00")
		if n == "" || n[0] >= 0x80 { // the sign bit is clear
			n = "\x00" + n
		}
		b = append(append(b, 0x02, byte(len(n))), n...)
	}
	b[0], b[1] = 0x30, byte(len(b)-2) // less than 128 octets, also of P-384
	return b
}

// smallRSA verifies a signature in the form of PKCS #1 v1.5 (RFC 8017 §8.2.2), by SHA-1. Nothing of it is secret.
func smallRSA(p *rsa.PublicKey, h crypto.Hash, sum []byte, sig string) bool {
	const prefix = "\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14" // DigestInfo of SHA-1
	size := p.Size()
	s := new(big.Int).SetBytes([]byte(sig))
	if h != crypto.SHA1 || len(sig) != size || s.Cmp(p.N) >= 0 {
		return false
	}
	fill := size - 3 - len(prefix) - len(sum)
	want := "\x00\x01" + strings.Repeat("\xff", fill) + "\x00" + prefix + string(sum)
	got := make([]byte, size)
	return string(s.Exp(s, big.NewInt(int64(p.E)), p.N).FillBytes(got)) == want
}

// hashes are those that algorithms sign the sum of.
var hashes = map[uint8]crypto.Hash{
	dns.RSASHA1: crypto.SHA1, dns.RSASHA1NSEC3SHA1: crypto.SHA1, dns.RSASHA256: crypto.SHA256, dns.RSASHA512: crypto.SHA512,
	dns.ECDSAP256SHA256: crypto.SHA256, dns.ECDSAP384SHA384: crypto.SHA384,
}

func digest(h crypto.Hash, data []byte) []byte {
	d := h.New()
	d.Write(data)
	return d.Sum(nil)
}

// digests are those of DS records (RFC 3658, 4509, 6605).
var digests = map[uint8]crypto.Hash{dns.SHA1: crypto.SHA1, dns.SHA256: crypto.SHA256, dns.SHA384: crypto.SHA384}

// delegation is a DS record.
type delegation struct {
	tag       uint16
	algorithm uint8
	kind      uint8 // of the digest
	digest    string
}

// parseDS reads the RDATA of a DS record. It reports false if that is
// malformed.
func parseDS(rdata string) (d delegation, ok bool) {
	if len(rdata) < 5 {
		return d, false
	}
	return delegation{uint16(rdata[0])<<8 | uint16(rdata[1]), rdata[2], rdata[3], rdata[4:]}, true
}

// of reports whether the DS record is one of a zone's key.
func (d *delegation) of(zone string, k *key) bool {
	return string(digest(digests[d.kind], []byte(zone+k.rdata))) == d.digest
}
