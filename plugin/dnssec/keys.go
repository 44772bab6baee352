package dnssec

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"
)

// Errors of keys.
var (
	errNoPublic  = errors.New("no public key found")
	errNoPrivate = errors.New("no private key found")
)

// DNSKEY is a key pair.
type DNSKEY struct {
	K *dns.DNSKEY
	D *dns.DS // with SHA-256, for the zone above

	s   crypto.Signer
	tag uint16
}

// ParseKeyFile reads a key pair from two files, as dnssec-keygen and ldns-keygen write them: the public key as a DNSKEY record in master file
// format, the private one in BIND's.
func ParseKeyFile(pubFile, privFile string) (*DNSKEY, error) {
	pub, err := os.Open(filepath.Clean(pubFile))
	if err != nil {
		return nil, err
	}
	defer pub.Close()
	priv, err := os.Open(filepath.Clean(privFile))
	if err != nil {
		return nil, err
	}
	defer priv.Close()
	rr, err := dns.ReadRR(pub, pubFile)
	if err != nil {
		return nil, err
	}
	k, ok := rr.(*dns.DNSKEY)
	if !ok {
		return nil, errNoPublic
	}
	return newKey(k, priv, privFile)
}

// newKey is the pair of k and the private key that is read from priv, which file names in errors.
func newKey(k *dns.DNSKEY, priv io.Reader, file string) (*DNSKEY, error) {
	p, err := zonekeys.ReadPrivate(k, priv, file)
	if err != nil {
		return nil, err
	}
	var s crypto.Signer
	switch p := p.(type) {
	case *rsa.PrivateKey:
		s = p
	case *ecdsa.PrivateKey:
		s = p
	case ed25519.PrivateKey:
		s = p
	default:
		return nil, errNoPrivate
	}
	key := &DNSKEY{K: k, D: k.ToDS(dns.SHA256), s: s, tag: k.KeyTag()}
	if err := key.check(); err != nil {
		return nil, fmt.Errorf("key %s (keyid: %d): %w", k.Hdr.Name, key.tag, err)
	}
	return key, nil
}

// check signs something and looks at it with the public key.
func (k *DNSKEY) check() error {
	now := time.Now()
	sig := k.rrsig(k.K.Hdr.Name, now, now.Add(time.Hour))
	if err := sig.Sign(k.s, []dns.RR{k.K}); err != nil {
		return err
	}
	if err := sig.Verify(k.K, []dns.RR{k.K}); err != nil {
		return fmt.Errorf("the private key is not that of the public key: %w", err)
	}
	return nil
}

// rrsig is a signature of k that is yet to be made.
func (k *DNSKEY) rrsig(zone string, from, to time.Time) *dns.RRSIG {
	return &dns.RRSIG{Algorithm: k.K.Algorithm, KeyTag: k.tag, SignerName: zone, Inception: uint32(from.Unix()), Expiration: uint32(to.Unix())}
}

func (k *DNSKEY) isKSK() bool { return k.K.Flags == dns.ZONE|dns.SEP }
func (k *DNSKEY) isZSK() bool { return k.K.Flags == dns.ZONE }

// keyring is keys by what they sign.
type keyring struct {
	all      []*DNSKEY
	ofKeys   []*DNSKEY // those that sign DNSKEY records
	ofOthers []*DNSKEY // those that sign all else
}

func newKeyring(keys []*DNSKEY, split bool) keyring {
	if !split {
		return keyring{keys, keys, keys}
	}
	r := keyring{all: keys}
	for _, k := range keys {
		if k.isKSK() {
			r.ofKeys = append(r.ofKeys, k)
		} else {
			r.ofOthers = append(r.ofOthers, k)
		}
	}
	return r
}

// signing is the keys that sign records of a type.
func (r *keyring) signing(rrtype uint16) []*DNSKEY {
	if rrtype == dns.TypeDNSKEY {
		return r.ofKeys
	}
	return r.ofOthers
}

// splits reports whether there are keys for keys, and keys for all else.
func splits(keys []*DNSKEY) bool {
	var ksk, zsk bool
	for _, k := range keys {
		ksk, zsk = ksk || k.isKSK(), zsk || k.isZSK()
	}
	return ksk && zsk
}

// keyFiles is the names of the files of a key, whose name may have the extension of either, in the folder root if it is relative.
func keyFiles(name, root string) (pub, priv string) {
	name = corefile.Below(root, strings.TrimSuffix(strings.TrimSuffix(name, ".key"), ".private"))
	return name + ".key", name + ".private"
}
