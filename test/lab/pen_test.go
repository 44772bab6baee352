package lab

import (
	"crypto"
	"encoding/base64"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/circl/sign/ed448"
	"github.com/miekg/dns"
)

// pen signs RRsets as a zone, rightly or wrongly.
type pen struct {
	key     *dns.DNSKEY
	private crypto.Signer
	signer  string // that the signatures name, the key's owner if empty
}

// readPen reads what dnssec-keygen has made.
func readPen(t *testing.T, dir, file string) *pen {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file+".key"))
	if err != nil {
		t.Fatal(err)
	}
	p := &pen{key: record(string(text)).(*dns.DNSKEY)}
	name := filepath.Join(dir, file+".private")
	secret, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if p.key.Algorithm == dns.ED448 {
		_, seed, _ := strings.Cut(string(secret), "PrivateKey: ")
		seed, _, _ = strings.Cut(seed, "\n")
		b, err := base64.StdEncoding.DecodeString(seed)
		if err != nil {
			t.Fatal(err)
		}
		p.private = ed448Signer{ed448.NewKeyFromSeed(b)}
		return p
	}
	private, err := p.key.ReadPrivateKey(strings.NewReader(string(secret)), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p.private = private.(crypto.Signer)
	return p
}

// ed448Signer signs for package dns, which knows Ed448 by name only: it is asked for an Ed25519 signature, whose
// algorithm stands in the third octet of what is signed.
type ed448Signer struct{ ed448.PrivateKey }

func (s ed448Signer) Sign(_ io.Reader, data []byte, _ crypto.SignerOpts) ([]byte, error) {
	own := append([]byte(nil), data...)
	own[2] = dns.ED448
	return ed448.Sign(s.PrivateKey, own, ""), nil
}

// sign is the signature of an RRset. change may alter what is signed of it.
func (p *pen) sign(set []dns.RR, change func(*dns.RRSIG)) *dns.RRSIG {
	now := time.Now()
	sig := &dns.RRSIG{
		Hdr: dns.RR_Header{Ttl: set[0].Header().Ttl}, Algorithm: p.key.Algorithm, KeyTag: p.key.KeyTag(), SignerName: p.key.Hdr.Name,
		Inception: uint32(now.Add(-time.Hour).Unix()), Expiration: uint32(now.Add(30 * 24 * time.Hour).Unix()),
	}
	if p.signer != "" {
		sig.SignerName = p.signer
	}
	if change != nil {
		change(sig)
	}
	own := sig.Algorithm
	if own == dns.ED448 {
		sig.Algorithm = dns.ED25519
	}
	if err := sig.Sign(p.private, set); err != nil {
		panic(err) // a fault that cannot be made is one of the test
	}
	sig.Algorithm = own
	return sig
}

// oddRSA is an RSA key of a size or exponent that the standard library makes no key of.
type oddRSA struct{ n, e, d *big.Int }

// newRSA makes a key whose modulus has so many bits.
func newRSA(bits int, exponent *big.Int) oddRSA {
	one := big.NewInt(1)
	for {
		p, q := prime(bits/2), prime(bits/2)
		n := new(big.Int).Mul(p, q)
		phi := new(big.Int).Mul(p.Sub(p, one), q.Sub(q, one))
		if d := new(big.Int).ModInverse(exponent, phi); d != nil && n.BitLen() == bits {
			return oddRSA{n, exponent, d}
		}
	}
}

// Public implements crypto.Signer.
func (k oddRSA) Public() crypto.PublicKey { return nil }

// Sign signs a sum by SHA-256 (RFC 8017 §8.2.1).
func (k oddRSA) Sign(_ io.Reader, sum []byte, _ crypto.SignerOpts) ([]byte, error) {
	const prefix = "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20" // DigestInfo
	size := (k.n.BitLen() + 7) / 8
	text := "\x00\x01" + strings.Repeat("\xff", size-3-len(prefix)-len(sum)) + "\x00" + prefix + string(sum)
	m := new(big.Int).SetBytes([]byte(text))
	return m.Exp(m, k.d, k.n).FillBytes(make([]byte, size)), nil
}

// text is the public key in the form of RFC 3110 §2.
func (k oddRSA) text() string {
	e := k.e.Bytes()
	return base64.StdEncoding.EncodeToString(append(append([]byte{byte(len(e))}, e...), k.n.Bytes()...))
}
