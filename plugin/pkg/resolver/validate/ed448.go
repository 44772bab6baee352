package validate

import (
	"bytes"
	"crypto/sha3"

	"github.com/cloudflare/circl/ecc/goldilocks"
)

// ed448Key is a public key of Ed448 as a DNSKEY record has it (RFC 8080 §3). Whether it is a point of the curve shows
// when it is used.
type ed448Key string

// Octets of a key, of a signature, and of the hash that is signed (RFC 8032 §5.2).
const (
	ed448Octets    = 57
	ed448SigOctets = 2 * ed448Octets
	ed448Hash      = 114
)

// verify reports whether sig is the key's signature of data (RFC 8032 §5.2.7). Of the module only the arithmetic of the
// curve is used: the server with the module's own Ed448, which can sign as well, is 56 KiB larger.
func (k ed448Key) verify(data []byte, sig string) bool {
	if len(sig) != ed448SigOctets || !belowOrder(sig[ed448Octets:]) {
		return false
	}
	a, err := goldilocks.FromBytes([]byte(k))
	if err != nil {
		return false
	}
	a.Neg()
	h := sha3.NewSHAKE256()
	const domain = "SigEd448\x00\x00" // dom4(0, "")
	for _, part := range []string{domain, sig[:ed448Octets], string(k), string(data)} {
		_, _ = h.Write([]byte(part))
	}
	var sum [ed448Hash]byte
	_, _ = h.Read(sum[:])
	var s, n goldilocks.Scalar
	n.FromBytes(sum[:])
	s.FromBytes([]byte(sig[ed448Octets:]))
	var r [ed448Octets]byte
	err = goldilocks.Curve{}.CombinedMult(&s, &n, a).ToBytes(r[:]) // R = S B - k A
	return err == nil && bytes.Equal(r[:], []byte(sig[:ed448Octets]))
}

// belowOrder reports whether S, whose octets begin with the least, is below the order of the group: else a signature
// could be changed into another (RFC 8032 §8.4).
func belowOrder(s string) bool {
	order := goldilocks.Curve{}.Order()
	for i := len(s) - 1; i >= 0; i-- {
		o := byte(0)
		if i < len(order) {
			o = order[i]
		}
		if s[i] != o {
			return s[i] < o
		}
	}
	return false
}
