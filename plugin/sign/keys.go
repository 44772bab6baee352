package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/miekg/dns"
)

// Pair is a key that signs all of a zone, DNSKEY records too (a CSK).
type Pair struct {
	Public  *dns.DNSKEY
	KeyTag  uint16
	Private crypto.Signer
}

// readPair reads a key pair from two files, as dnssec-keygen and ldns-keygen write them.
func readPair(public, private string) (Pair, error) {
	f, err := os.Open(filepath.Clean(public))
	if err != nil {
		return Pair{}, err
	}
	defer f.Close()
	rr, err := dns.ReadRR(f, public)
	if err != nil {
		return Pair{}, err
	}
	if rr == nil {
		return Pair{}, fmt.Errorf("no RR in %q", public)
	}
	key, ok := rr.(*dns.DNSKEY)
	if !ok {
		return Pair{}, fmt.Errorf("RR in %q is not a DNSKEY: %d", public, rr.Header().Rrtype)
	}
	if key.Flags&(dns.ZONE|dns.SEP) != dns.ZONE|dns.SEP {
		return Pair{}, fmt.Errorf("DNSKEY in %q is not a CSK/KSK", public)
	}
	p, err := os.Open(filepath.Clean(private))
	if err != nil {
		return Pair{}, err
	}
	defer p.Close()
	secret, err := key.ReadPrivateKey(p, private)
	if err != nil {
		return Pair{}, err
	}
	pair := Pair{Public: key, KeyTag: key.KeyTag()}
	switch secret := secret.(type) {
	case *rsa.PrivateKey:
		pair.Private = secret
	case *ecdsa.PrivateKey:
		pair.Private = secret
	case ed25519.PrivateKey:
		pair.Private = secret
	default:
		return Pair{}, fmt.Errorf("no private key that can sign in %q", private)
	}
	return pair, pair.check(private)
}

// check signs something and looks at it with the public key.
func (p *Pair) check(private string) error {
	sig := &dns.RRSIG{Algorithm: p.Public.Algorithm, KeyTag: p.KeyTag, SignerName: p.Public.Hdr.Name}
	if err := sig.Sign(p.Private, []dns.RR{p.Public}); err != nil {
		return fmt.Errorf("%q: %w", private, err)
	}
	if err := sig.Verify(p.Public, []dns.RR{p.Public}); err != nil {
		return fmt.Errorf("the private key in %q is not that of the public key: %w", private, err)
	}
	return nil
}

// pairFiles is the names of the files of a key, whose name may have the extension of either.
func pairFiles(name string) (public, private string) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".key"), ".private")
	return name + ".key", name + ".private"
}

// readFolder reads the keys of a zone from a folder: all files K<zone>+*+*.key with their private ones.
func readFolder(dir, origin string) (pairs []Pair, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := strings.ToLower(e.Name()); strings.HasPrefix(name, "k"+origin+"+") && strings.HasSuffix(name, ".key") {
			pair, err := readPair(pairFiles(filepath.Join(dir, e.Name())))
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, pair)
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("no keys of zone %s in %q", origin, dir)
	}
	return pairs, nil
}
