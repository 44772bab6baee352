// Package zonekeys is the keys that sign whole zones (RFC 4034), and the signatures and records that come of them.
//
//	Kzone.+013+12345.key, .private ──Read, Source──▶ Pair ──Sign──▶ RRSIG
//	                                                   └──Records──▶ DNSKEY, CDS, CDNSKEY
//
// A Pair is never changed, and may be used by any number of goroutines. Start at Source.
package zonekeys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Pair is a key that signs all of a zone, DNSKEY records too (a CSK, RFC 9499 §10), with the bits ZONE and SEP. Others
// are not taken: a zone whose keys share the work would need to be told which key signs what.
type Pair struct {
	Public  *dns.DNSKEY   // as its file has it
	KeyTag  uint16        // of Public (RFC 4034 appendix B)
	Private crypto.Signer // fits Public: it was tried
}

// Read reads a key pair from two files, as dnssec-keygen and ldns-keygen write them. name is that of either, or of both
// without extension.
func Read(name string) (Pair, error) {
	public, private := pairFiles(name)
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
	// The formats of BIND and ldns are the same; names of their fields differ in case only.
	secret, err := ReadPrivate(key, p, private)
	if err != nil {
		return Pair{}, err
	}
	// What Private holds must be able to sign: a public key alone, or one of a kind that is only read, is of no use.
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

// ReadPrivate is key.ReadPrivateKey that takes lines which end with CR and LF, too, and whose errors name the file and
// quote nothing of it, as that may be secret.
func ReadPrivate(key *dns.DNSKEY, r io.Reader, file string) (crypto.PrivateKey, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPrivate))
	if err != nil {
		return nil, fmt.Errorf("private key %q: %w", file, err)
	}
	secret, err := key.ReadPrivateKey(bytes.NewReader(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))), file)
	if err != nil && strings.Contains(err.Error(), "no private key seen") {
		err = errors.New("no private key seen")
	}
	if err == nil && !usable(secret) {
		err = errors.New("it is not complete, or of another algorithm than the public key")
	}
	if err != nil {
		return nil, fmt.Errorf("private key %q: %w", file, err)
	}
	return secret, nil
}

// usable reports whether a private key can be tried at all: where its file lacks the key itself, or the public key
// is of another kind, the library makes one that panics when it is to sign.
func usable(secret crypto.PrivateKey) bool {
	switch secret := secret.(type) {
	case *ecdsa.PrivateKey:
		return secret.Curve != nil
	case ed25519.PrivateKey:
		return len(secret) == ed25519.PrivateKeySize
	}
	return true
}

// maxPrivate is how much is read of a private key, in octets. One of 16,384 bits takes 15,000.
const maxPrivate = 64 << 10

// check signs something and looks at it with the public key.
func (p *Pair) check(private string) error {
	// Else nobody would notice before validators refuse the zone.
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
	// The file's name says which zone it is for; what stands in it is not compared, as an owner may be missing.
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if (strings.HasPrefix(name, "k"+origin+"+") || strings.HasPrefix(name, "k"+fileName(origin)+"+")) && strings.HasSuffix(name, ".key") {
			pair, err := Read(filepath.Join(dir, e.Name()))
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

// fileName is a zone's name as BIND writes it in names of files, in lower case: it escapes what may have a meaning
// there, such as the slash of a network that is delegated in parts (RFC 2317). The dots between labels stay, those of a
// label do not.
func fileName(zone string) string {
	lower, err := wire.LowerName(zone)
	if err != nil {
		return zone
	}
	var b []byte
	for ; lower[0] > 0; lower = lower[1+lower[0]:] {
		for _, c := range lower[1 : 1+lower[0]] {
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
				b = append(b, c)
			} else {
				b = fmt.Appendf(b, "%%%02x", c)
			}
		}
		b = append(b, '.')
	}
	return string(b)
}

// Source is where the keys of zones come from, as an option "key file|directory NAME..." says. Its zero value has none.
// Files are read when they are named, so that an error has its line; folders when the zone is known.
type Source struct {
	pairs   []Pair
	folders []string // with keys of each zone
}

// Add adds keys from files, which are read, or from folders; kind is "file" or "directory".
func (s *Source) Add(kind, name string) error {
	switch kind {
	case "file":
		pair, err := Read(name)
		if err != nil {
			return err
		}
		s.pairs = append(s.pairs, pair)
	case "directory":
		s.folders = append(s.folders, name)
	default:
		return fmt.Errorf("unknown property '%s': keys come from file or directory", kind)
	}
	return nil
}

// Empty reports whether there are no keys, and no folders to look for them.
func (s *Source) Empty() bool { return len(s.pairs)+len(s.folders) == 0 }

// A file that is named is taken, whosever key it says it is: several zones may share one. It may be a slip as well, and
// then nothing else would tell, for the zone is signed all the same.

// For is the keys of a zone. origin is fully qualified and in lower case. warn is told of keys whose files name another
// zone, and of revoked ones. One that is named twice, or lies in a folder, too, is one. An error tells which folder
// cannot be read, or has no keys of the zone.
func (s *Source) For(origin string, warn func(format string, args ...any)) ([]Pair, error) {
	for _, p := range s.pairs {
		// Either may be written otherwise.
		if owner := dns.CanonicalName(p.Public.Hdr.Name); fileName(owner) != fileName(origin) {
			warn("Key %d of %s is to sign %s", p.KeyTag, owner, origin)
		}
	}
	all := s.pairs[:len(s.pairs):len(s.pairs)]
	for _, dir := range s.folders {
		more, err := readFolder(dir, origin)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	var pairs []Pair
	for _, p := range all {
		if slices.ContainsFunc(pairs, p.Same) {
			continue
		}
		pairs = append(pairs, p)
		// Beside others such a key tells of its end (RFC 5011 §2.1). No validator believes what is signed by it alone.
		if p.Public.Flags&dns.REVOKE != 0 {
			warn("Key %d of %s is revoked: the zone needs another one", p.KeyTag, origin)
		}
	}
	return pairs, nil
}

// Same reports whether two keys have the same DNSKEY record, whatever its owner and TTL.
func (p Pair) Same(q Pair) bool {
	a, b := p.Public, q.Public
	return a.Flags == b.Flags && a.Protocol == b.Protocol && a.Algorithm == b.Algorithm && a.PublicKey == b.PublicKey
}
