package validate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// A zone whose key is of a size that is not served is unsigned to us. One whose key is none at all is bogus: its
// algorithm is served, so there is somebody to ask for a better one (RFC 4035 §5.2).
func TestKeysThatCannotBeUsed(t *testing.T) {
	rsa := func(exponent, modulus string) string { return string(rune(len(exponent))) + exponent + modulus }
	number := func(octets int) string { return "\xff" + strings.Repeat("\x01", octets-1) }
	for what, c := range map[string]struct {
		algorithm uint8
		public    string
		status    Status
		code      uint16
	}{
		"RSA of 512 bits":                 {8, rsa("\x01\x00\x01", number(64)), Insecure, 1},
		"RSA of 4104 bits":                {8, rsa("\x01\x00\x01", number(513)), Insecure, 1},
		"RSA with an exponent of 33 bits": {8, rsa("\x01\x00\x00\x00\x0f", number(128)), Insecure, 1},
		"RSA with an exponent of 65 bits": {10, rsa("\x01\x00\x00\x00\x00\x00\x00\x00\x0f", number(128)), Insecure, 1},
		"RSA with exponent 1":             {8, rsa("\x01", number(128)), Bogus, 9},
		"RSA with an even exponent":       {8, rsa("\x04", number(128)), Bogus, 9},
		"RSA with an even modulus":        {8, rsa("\x03", number(127)+"\x02"), Bogus, 9},
		"RSA without modulus":             {8, "\x03\x01\x00\x01", Bogus, 9},
		"P-256, no point":                 {13, number(64), Bogus, 9},
		"P-256, too short":                {13, number(63), Bogus, 9},
		"P-384, too long":                 {14, number(97), Bogus, 9},
		"Ed25519, too short":              {15, number(31), Bogus, 9},
		"Ed448, too short":                {16, number(56), Bogus, 9},
	} {
		w, root, z := lab(t, c.algorithm)
		rrs := z.signed(t, "", "www.example. 300 IN A 192.0.2.1")
		z.key.PublicKey = base64.StdEncoding.EncodeToString([]byte(c.public))
		w.child(root, z)
		w.want(what, w.judge("www.example.", dns.TypeA, message(t, "www.example.", dns.TypeA, 0, rrs, nil)), c.status, c.code)
	}
	// Leading zeros change nothing (RFC 3110 §2 prohibits them, signers have made them).
	for _, public := range []string{rsa("\x00\x01\x00\x01", number(128)), rsa("\x01\x00\x01", "\x00"+number(128)), "\x00\x00\x03\x01\x00\x01" + number(128)} {
		if k, odd := publicKey(8, public); k == nil || odd {
			t.Errorf("%x is no key", public)
		}
	}
}

// What a signature counts as depends on what it costs, so that no zone can have keys of which 48 checks take long.
func TestWeights(t *testing.T) {
	rsa := func(exponent string, bits int) string {
		return string(rune(len(exponent))) + exponent + "\xff" + strings.Repeat("\x01", bits/8-1)
	}
	const usual, longest = "\x01\x00\x01", "\x7f\xff\xff\xff"
	for _, c := range []struct {
		what      string
		algorithm uint8
		public    string // that of a key that was made, if empty
		checks    int
	}{
		{"RSA, 1024 bits", 8, rsa(usual, 1024), 1},
		{"RSA, 2048 bits, long exponent", 8, rsa(longest, 2048), 1},
		{"RSA, 4096 bits", 10, rsa(usual, 4096), 2},
		{"RSA, 4096 bits, long exponent", 8, rsa(longest, 4096), 4},
		{"P-256", 13, "", 1},
		{"P-384", 14, "", 2},
		{"Ed25519", 15, "", 1},
	} {
		w, root, z := lab(t, c.algorithm)
		if c.public != "" {
			z.key.PublicKey = base64.StdEncoding.EncodeToString([]byte(c.public))
		}
		w.child(root, z)
		before := w.judge(".", dns.TypeDNSKEY, w.replies[Question{"\x00", dns.TypeDNSKEY}]).Checks + 1 // DS
		bad := z.sign(t, "", z.key)
		bad[1].(*dns.RRSIG).Expiration-- // which is not what was signed
		w.put(z.zone, dns.TypeDNSKEY, 0, bad, nil)
		v := w.judge("www.example.", dns.TypeA, message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), nil))
		if n := v.Checks - before; v.Status != Bogus || n != c.checks {
			t.Errorf("%s: %v after %d checks, want it bogus after %d", c.what, v.Status, n, c.checks)
		}
	}
}

// A key of P-256 that has checked much checks by package p256, and what that does not hold is for the standard library.
func TestQuickKeys(t *testing.T) {
	data, sum := []byte("data"), sha256.Sum256([]byte("data"))
	var all [2]*key
	var sigs [2]string
	for i := range all {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		public, err := private.PublicKey.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		sigs[i] = string(r.FillBytes(make([]byte, 32))) + string(s.FillBytes(make([]byte, 32)))
		all[i] = parseKey("\x01\x00\x03\x0d" + string(public[1:]))
		for range 1000 {
			if !all[i].verify(data, sigs[i]) {
				t.Fatal("a good signature does not hold")
			}
		}
	}
	a, b := all[0], all[1]
	if a.verify(data, sigs[1]) {
		t.Fatal("another key's signature holds")
	}
	a.quick = b.quick
	if !a.verify(data, sigs[1]) {
		t.Error("what checked so often has not become quick")
	}
	if !a.verify(data, sigs[0]) {
		t.Error("what the quick one does not hold is not checked any more")
	}
	if k := parseKey("\x01\x00\x03\x0e" + strings.Repeat("\x01", 96)); k.quick != nil {
		t.Error("P-384 has no quick keys")
	}
}
