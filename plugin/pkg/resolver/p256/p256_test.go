package p256

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"filippo.io/nistec"
)

// privateKey is the key of a number.
func privateKey(tb testing.TB, d *big.Int) *ecdsa.PrivateKey {
	tb.Helper()
	k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d.FillBytes(make([]byte, Octets)))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func randomKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// hot is a key that got a table. The keys in meanwhile are used as often.
func hot(tb testing.TB, public *ecdsa.PublicKey, meanwhile ...*Key) *Key {
	tb.Helper()
	k, ok := New(public)
	if !ok {
		tb.Fatal("not a key")
	}
	for range 2 * mostTables / triedAtAll * enoughUses {
		if k.multiples() != nil {
			return k
		}
		for _, other := range meanwhile {
			other.multiples()
		}
	}
	tb.Fatal("it gets no table")
	return nil
}

func octets(n *big.Int) string { return string(n.FillBytes(make([]byte, Octets))) }

func signed(tb testing.TB, k *ecdsa.PrivateKey, sum []byte) (r, s *big.Int) {
	tb.Helper()
	r, s, err := ecdsa.Sign(rand.Reader, k, sum)
	if err != nil {
		tb.Fatal(err)
	}
	return r, s
}

// It holds what the standard library holds, and nothing else.
func TestAsTheStandardLibrary(t *testing.T) {
	for i := range 20 {
		private := randomKey(t)
		k := hot(t, &private.PublicKey)
		sum := sha256.Sum256([]byte(fmt.Sprint(i)))
		r, s := signed(t, private, sum[:])
		other := sha256.Sum256([]byte("other"))
		negative := new(big.Int).Sub(order, s)
		for what, tc := range map[string]struct {
			sum  []byte
			r, s *big.Int
			want bool
		}{
			"its signature":                   {sum[:], r, s, true},
			"the other root":                  {sum[:], r, negative, true}, // -R has the x of R
			"of another sum":                  {other[:], r, s, false},
			"r and s in turns":                {sum[:], s, r, false},
			"another r":                       {sum[:], new(big.Int).Xor(r, big.NewInt(1)), s, false},
			"another s":                       {sum[:], r, new(big.Int).Xor(s, big.NewInt(1)), false},
			"no r":                            {sum[:], new(big.Int), s, false},
			"no s":                            {sum[:], r, new(big.Int), false},
			"r of the order":                  {sum[:], order, s, false},
			"s of the order":                  {sum[:], r, order, false},
			"a sum that is no less than n":    {bytes.Repeat([]byte{0xff}, Octets), r, s, false},
			"a sum of 0":                      {make([]byte, Octets), r, s, false},
			"a signature of another key":      {sum[:], r, new(big.Int).Add(s, big.NewInt(1)), false},
			"numbers that no octet is set of": {sum[:], new(big.Int), new(big.Int), false},
		} {
			if std := ecdsa.Verify(&private.PublicKey, tc.sum, tc.r, tc.s); std != tc.want {
				t.Fatalf("%s: the standard library says %v", what, std)
			}
			if got := k.Holds(tc.sum, octets(tc.r), octets(tc.s)); got != tc.want {
				t.Errorf("%s: %v", what, got)
			}
		}
		if k.Holds(sum[:], octets(r)[1:], octets(s)) || k.Holds(sum[:], octets(r), octets(s)+"x") || k.Holds(sum[:20], octets(r), octets(s)) {
			t.Error("a wrong length")
		}
	}
}

// rOf is the x of n G, as it stands in signatures.
func rOf(t *testing.T, n *big.Int) *big.Int {
	t.Helper()
	p, err := nistec.NewP256Point().ScalarBaseMult([]byte(octets(n)))
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.BytesX()
	if err != nil {
		t.Fatal(err)
	}
	r := new(big.Int).SetBytes(x)
	return r.Mod(r, order)
}

// Keys and sums with which points meet that are equal, or each other's negative, where they are added.
func TestPointsThatMeet(t *testing.T) {
	one := big.NewInt(1)
	for what, d := range map[string]*big.Int{
		"G": one, "2G": big.NewInt(2), "-G": new(big.Int).Sub(order, one), "2^32 G": new(big.Int).Lsh(one, 32), "-2^224 G": new(big.Int).Sub(order, new(big.Int).Lsh(one, 224)),
	} {
		private := privateKey(t, d)
		k := hot(t, &private.PublicKey)
		inverse := new(big.Int).ModInverse(d, order)
		for _, u := range []*big.Int{one, big.NewInt(3), new(big.Int).Lsh(one, 255), new(big.Int).Sub(order, one)} {
			for _, sign := range []int64{1, -1} {
				// u1 G is u2 Q, or its negative, if u1 is u2 d or the negative of that.
				u2 := new(big.Int).Mod(new(big.Int).Mul(u, inverse), order)
				u1 := new(big.Int).Mod(new(big.Int).Mul(u, big.NewInt(sign)), order)
				r := rOf(t, new(big.Int).Mod(new(big.Int).Lsh(u, 1), order)) // R = 2 u G
				s := new(big.Int).Mod(new(big.Int).Mul(r, new(big.Int).ModInverse(u2, order)), order)
				e := new(big.Int).Mod(new(big.Int).Mul(u1, s), order)
				sum := []byte(octets(e))
				want := sign > 0
				if std := ecdsa.Verify(&private.PublicKey, sum, r, s); std != want {
					t.Fatalf("%s, %v: the standard library says %v", what, u, std)
				}
				if got := k.Holds(sum, octets(r), octets(s)); got != want {
					t.Errorf("%s, %v: %v", what, u, got)
				}
			}
		}
	}
}

// A number is below the order, though one above means the same (FIPS 186-5 §6.4.2 step 1).
func TestNumberAboveOrder(t *testing.T) {
	d, nonce, small := big.NewInt(12345), big.NewInt(67890), big.NewInt(5)
	private := privateKey(t, d)
	k := hot(t, &private.PublicKey)
	r := rOf(t, nonce)
	e := new(big.Int).Mul(small, nonce) // s = (e + r d) / nonce
	sum := []byte(octets(e.Mod(e.Sub(e, new(big.Int).Mul(r, d)), order)))
	if !k.Holds(sum, octets(r), octets(small)) {
		t.Fatal("it is no signature")
	}
	if k.Holds(sum, octets(r), octets(new(big.Int).Add(small, order))) {
		t.Error("s is above the order")
	}
}

// A product by a table is the product.
func TestMultiply(t *testing.T) {
	private := randomKey(t)
	k := hot(t, &private.PublicKey)
	all := [][Octets]byte{{}, {31: 1}, {0: 0x80}, {27: 1}}
	for i := range all[0] {
		for range 8 {
			var n [Octets]byte
			rand.Read(n[i:])
			all = append(all, n)
		}
	}
	for _, n := range all {
		want, err := nistec.NewP256Point().ScalarMult(&k.point, n[:])
		if err != nil {
			t.Fatal(err)
		}
		var got nistec.P256Point
		if k.table.Load().multiply(&got, &n); !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("times %x: %x, want %x", n, got.Bytes(), want.Bytes())
		}
	}
}

// A key has a table once it was used often, and there are so many tables: a key that is used keeps its own.
func TestTables(t *testing.T) {
	private := randomKey(t)
	sum := sha256.Sum256(nil)
	r, s := signed(t, private, sum[:])
	rs, ss := octets(r), octets(s)
	k, _ := New(&private.PublicKey)
	for i := range enoughUses - 1 {
		if k.Holds(sum[:], rs, ss) {
			t.Fatalf("use %d: it has a table", i)
		}
	}
	if !k.Holds(sum[:], rs, ss) {
		t.Fatal("it has no table")
	}
	for i := range 20 * mostTables {
		hot(t, &private.PublicKey, k)
		if !k.Holds(sum[:], rs, ss) {
			t.Fatalf("it has lost its table to another one after %d", i)
		}
	}
	for range 20 * mostTables {
		hot(t, &private.PublicKey)
	}
	if k.table.Load() != nil {
		t.Error("it has kept its table without any use")
	}
	n := 0
	for _, o := range tables.of {
		if o != nil && o.table.Load() != nil {
			n++
		}
	}
	if n != mostTables {
		t.Errorf("%d tables", n)
	}
}

func TestOtherCurve(t *testing.T) {
	k, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := New(&k.PublicKey); ok {
		t.Error("a key of P-384")
	}
}

// Keys that take each other's tables at the same time hold what is theirs, and nothing else.
func TestConcurrently(t *testing.T) {
	var all [2 * mostTables]*Key
	var sigs [2 * mostTables][2]string
	sum, other := sha256.Sum256(nil), sha256.Sum256([]byte("other"))
	for i := range all {
		private := randomKey(t)
		all[i], _ = New(&private.PublicKey)
		r, s := signed(t, private, sum[:])
		sigs[i] = [2]string{octets(r), octets(s)}
	}
	var wait sync.WaitGroup
	var held atomic.Int64
	for g := range 4 {
		wait.Go(func() {
			random := mathrand.New(mathrand.NewPCG(uint64(g), 1))
			for range 8000 {
				i := random.IntN(len(all))
				if all[i].Holds(sum[:], sigs[i][0], sigs[i][1]) {
					held.Add(1)
				}
				if all[i].Holds(other[:], sigs[i][0], sigs[i][1]) {
					t.Error("a signature of another sum")
				}
			}
		})
	}
	wait.Wait()
	if held.Load() == 0 {
		t.Error("no key had a table")
	}
}

// Whatever the numbers, it is held if and only if the standard library holds it.
func FuzzHolds(f *testing.F) {
	private := privateKey(f, big.NewInt(20261123))
	k := hot(f, &private.PublicKey)
	sum := sha256.Sum256([]byte("x"))
	r, s := signed(f, private, sum[:])
	f.Add(sum[:], []byte(octets(r)), []byte(octets(s)))
	f.Add(make([]byte, Octets), order.Bytes(), order.Bytes())
	f.Fuzz(func(t *testing.T, sum, r, s []byte) {
		if len(sum) != Octets || len(r) != Octets || len(s) != Octets {
			return
		}
		want := ecdsa.Verify(&private.PublicKey, sum, new(big.Int).SetBytes(r), new(big.Int).SetBytes(s))
		for range enoughUses { // others may have taken its table
			if k.multiples() != nil {
				break
			}
		}
		if got := k.Holds(sum, string(r), string(s)); got != want {
			t.Errorf("%v, the standard library says %v", got, want)
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	private := randomKey(b)
	sum := sha256.Sum256(nil)
	r, s := signed(b, private, sum[:])
	der, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
	if err != nil {
		b.Fatal(err)
	}
	b.Run("table", func(b *testing.B) {
		k, rs, ss := hot(b, &private.PublicKey), octets(r), octets(s)
		b.ReportAllocs()
		for b.Loop() {
			if !k.Holds(sum[:], rs, ss) {
				b.Fatal("no")
			}
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !ecdsa.VerifyASN1(&private.PublicKey, sum[:], der) {
				b.Fatal("no")
			}
		}
	})
	b.Run("making", func(b *testing.B) {
		k, _ := New(&private.PublicKey)
		b.ReportAllocs()
		for b.Loop() {
			newTable(&k.point)
		}
	})
}
