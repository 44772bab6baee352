// Package p256 checks ECDSA signatures over P-256 (FIPS 186-5 §6.4.2, RFC 6605 §4) of keys that have signed much, in
// half the time that it takes without knowing the key. Start at Key.
//
// The arithmetic of the curve is the standard library's, which filippo.io/nistec exports; what is here is how often it
// is asked to add. Signatures, keys and what they sign are public: how long something takes may tell of them.
//
// Nothing depends on this package being right but time. That a signature holds is found out by meeting the very number
// that it names, which a fault would miss; and who is not told that it holds asks the standard library.
package p256

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"math/big"
	"sync/atomic"

	"filippo.io/nistec"
)

// Octets is the length of each of a signature's two numbers, and of the sum that they sign.
const Octets = 32

// Key is a public key. It may be used by any number of goroutines.
type Key struct {
	point nistec.P256Point
	uses  atomic.Uint32 // without a table
	table atomic.Pointer[table]
	used  atomic.Bool // the table was, since somebody else wanted one
}

// New is the key k; ok is false if it is none of this curve.
func New(k *ecdsa.PublicKey) (key *Key, ok bool) {
	if k.Curve != elliptic.P256() {
		return nil, false
	}
	b, err := k.Bytes()
	if err != nil {
		return nil, false
	}
	key = new(Key)
	_, err = key.point.SetBytes(b)
	return key, err == nil
}

var order = elliptic.P256().Params().N

// A signature holds if the sum of two products, of the curve's own point G by sum/s and of the key by r/s, has r for x
// (FIPS 186-5 §6.4.2 steps 3 to 7). For G the standard library has a table of its own.

// Holds reports that r and s are the key's signature of a sum, all of Octets. If not, that says nothing: a key that was
// not used often so far has no table, and is not tried.
func (k *Key) Holds(sum []byte, r, s string) bool {
	t := k.multiples()
	if t == nil || len(sum) != Octets || len(r) != Octets || len(s) != Octets {
		return false
	}
	var n, w, u big.Int
	n.SetBytes([]byte(r))
	w.SetBytes([]byte(s))
	if n.Sign() == 0 || n.Cmp(order) >= 0 || w.Sign() == 0 || w.Cmp(order) >= 0 {
		return false
	}
	w.ModInverse(&w, order)
	var scalar [Octets]byte
	u.Mod(u.Mul(u.SetBytes(sum), &w), order).FillBytes(scalar[:])
	var ofG, sumOf nistec.P256Point
	if _, err := ofG.ScalarBaseMult(scalar[:]); err != nil {
		return false
	}
	u.Mod(u.Mul(&n, &w), order).FillBytes(scalar[:])
	t.multiply(&sumOf, &scalar)
	x, err := sumOf.Add(&sumOf, &ofG).BytesX()
	if err != nil { // it is the point at infinity
		return false
	}
	return u.Mod(u.SetBytes(x), order).Cmp(&n) == 0
}
