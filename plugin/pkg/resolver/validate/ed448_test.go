package validate

import (
	"crypto"
	"encoding/hex"
	"io"
	"testing"

	circl "github.com/cloudflare/circl/sign/ed448"
	"github.com/miekg/dns"
)

// ed448Signer signs for package dns, which knows Ed448 by name only: it is asked for an Ed25519 signature, whose algorithm stands
// in the third octet of what is signed.
type ed448Signer struct{ circl.PrivateKey }

func (s ed448Signer) Sign(_ io.Reader, data []byte, _ crypto.SignerOpts) ([]byte, error) {
	own := append([]byte(nil), data...)
	own[2] = 16
	return circl.Sign(s.PrivateKey, own, ""), nil
}

func octets(t testing.TB, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The vectors are those of RFC 8032 §7.4, "Blank" and "1 octet".
func TestEd448(t *testing.T) {
	for _, c := range []struct{ key, data, sig string }{
		{
			"5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180", "",
			"533a37f6bbe457251f023c0d88f976ae2dfb504a843e34d2074fd823d41a591f2b233f034f628281f2fd7a22ddd47d7828c59bd0a21bfd3980" +
				"ff0d2028d4b18a9df63e006c5d1c2d345b925d8dc00b4104852db99ac5c7cdda8530a113a0f4dbb61149f05a7363268c71d95808ff2e652600",
		},
		{
			"43ba28f430cdff456ae531545f7ecd0ac834a55d9358c0372bfa0c6c6798c0866aea01eb00742802b8438ea4cb82169c235160627b4c3a9480", "03",
			"26b8f91727bd62897af15e41eb43c377efb9c610d48f2335cb0bd0087810f4352541b143c4b981b7e18f62de8ccdf633fc1bf037ab7cd77980" +
				"5e0dbcc0aae1cbcee1afb2e027df36bc04dcecbf154336c19f0af7e0a6472905e799f1953d2a0ff3348ab21aa4adafd1d234441cf807c03a00",
		},
	} {
		data, sig := []byte(octets(t, c.data)), octets(t, c.sig)
		good := func(data []byte, sig string) bool { return key448(octets(t, c.key)).verify(data, sig) }
		if !good(data, sig) {
			t.Errorf("%q: the signature is refused", c.data)
		}
		for i := range sig {
			bad := []byte(sig)
			bad[i] ^= 1
			if good(data, string(bad)) {
				t.Errorf("%q: a signature with octet %d changed is taken", c.data, i)
			}
		}
		if good(append(data, 0), sig) || good(data, sig[1:]) || good(data, sig+"\x00") || good(data, "") {
			t.Errorf("%q: what is no signature is taken", c.data)
		}
		if more := plusOrder(sig); good(data, more) {
			t.Errorf("%q: S above the order is taken", c.data)
		}
		for name, bad := range map[string]string{"no point": octets(t, c.key[:112]) + "\x01", "another's": octets(t, c.key)[:56] + "\x00"} {
			if key448(bad).verify(data, sig) {
				t.Errorf("%q: the signature of a key that is %s is taken", c.data, name)
			}
		}
	}
	if k := key448("short"); k.public != nil || k.odd {
		t.Error("a key of 5 octets is one")
	}
}

func key448(rdata string) *key { return parseKey("\x01\x01\x03\x10" + rdata) }

// plusOrder is a signature with the group's order added to S: the same number of the group, in other octets.
func plusOrder(sig string) string {
	const order = "f34458ab92c27823558fc58d72c26c219036d6ae49db4ec4e923ca7cffffffffffffffffffffffffffffffffffffffffffffffffffffff3f00"
	o, _ := hex.DecodeString(order)
	b := []byte(sig)
	carry := 0
	for i := range o {
		n := int(b[57+i]) + int(o[i]) + carry
		b[57+i], carry = byte(n), n>>8
	}
	return string(b)
}

// How long one signature takes, by algorithm; weight goes by it.
func BenchmarkVerify(b *testing.B) {
	for _, a := range []uint8{8, 13, 14, 15, 16} {
		g := newSigner(b, "example.", a)
		rrs := g.signed(b, "", "www.example. 300 IN A 192.0.2.1")
		m := message(b, "www.example.", 1, 0, rrs, nil)
		s := m.Section[0][0]
		var sig signature
		s.EachSig(func(r string) bool { sig, _ = parseSig(r); return false })
		k := parseKey(rdataOf(b, g.key))
		b.Run(dns.AlgorithmToString[a], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !k.verify(signedData(nil, s, &sig, rdatas(s)), sig.bytes) {
					b.Fatal("refused")
				}
			}
		})
	}
}
