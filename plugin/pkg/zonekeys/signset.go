package zonekeys

import (
	"crypto"
	"crypto/rand"
	"encoding/binary"
	"io"
	"strings"

	"github.com/miekg/dns"
)

// SignSet is sig.Sign(key, set) with the right owner and number of labels. A wildcard's first label is the asterisk
// alone (RFC 4592 §2.1.1).
func SignSet(sig *dns.RRSIG, key crypto.Signer, set []dns.RR) error {
	name := set[0].Header().Name
	switch {
	case name == "*.":
		// The wildcard right below the root is "*.." to the library, which is no name.
		data, err := rootWildcardData(sig, set)
		if err != nil {
			return err
		}
		key, set = instead{key, data}, renamed(set, ".")
	case strings.HasPrefix(name, "*") && !strings.HasPrefix(name, "*."):
		// To the library all names that begin with an asterisk are wildcards: its signature of *x.example.org would be
		// one of *.example.org, of which every name can be made.
		set = renamed(set, `\`+name) // the same name, otherwise written
	}
	err := sig.Sign(key, set)
	sig.Hdr.Name = name
	return err
}

func renamed(set []dns.RR, name string) []dns.RR {
	out := make([]dns.RR, len(set))
	for i, rr := range set {
		out[i] = dns.Copy(rr)
		out[i].Header().Name = name
	}
	return out
}

// rootWildcardData is what sig signs (RFC 4034 §3.1.8.1) for the owner "*.": what it would sign for the owner ".",
// which has no labels to count either, with the right one.
func rootWildcardData(sig *dns.RRSIG, set []dns.RR) ([]byte, error) {
	const fixed = 18 // octets of the RRSIG before the signer's name
	ofRoot := *sig
	ofRoot.Algorithm = dns.ED25519 // by which data are not hashed
	var rec recorder
	if err := ofRoot.Sign(&rec, renamed(set, ".")); err != nil {
		return nil, err
	}
	rrs := fixed + 1 // the signer is the root: no other zone has that owner
	data := append([]byte(nil), rec.data[:rrs]...)
	data[2] = sig.Algorithm
	for left := rec.data[rrs:]; len(left) > 0; {
		n := 11 + int(binary.BigEndian.Uint16(left[9:]))
		data = append(append(data, 1, '*'), left[:n]...)
		left = left[n:]
	}
	return data, nil
}

// recorder keeps what it is to sign.
type recorder struct {
	crypto.Signer
	data []byte
}

func (r *recorder) Sign(_ io.Reader, data []byte, _ crypto.SignerOpts) ([]byte, error) {
	r.data = data
	return nil, nil
}

// instead signs data, whatever it is told to sign.
type instead struct {
	crypto.Signer
	data []byte
}

func (s instead) Sign(_ io.Reader, _ []byte, opts crypto.SignerOpts) ([]byte, error) {
	return crypto.SignMessage(s.Signer, rand.Reader, s.data, opts)
}
