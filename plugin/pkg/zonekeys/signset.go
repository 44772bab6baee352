package zonekeys

import (
	"crypto"
	"strings"

	"github.com/miekg/dns"
)

// SignSet is sig.Sign(key, set) with the right number of labels: that takes all names that begin with an asterisk for
// wildcards, and its signature of *x.example.org would be one of *.example.org, of which every name can be made. A
// wildcard's first label is the asterisk alone (RFC 4592 §2.1.1).
func SignSet(sig *dns.RRSIG, key crypto.Signer, set []dns.RR) error {
	name := set[0].Header().Name
	if !strings.HasPrefix(name, "*") || strings.HasPrefix(name, "*.") {
		return sig.Sign(key, set)
	}
	plain := make([]dns.RR, len(set))
	for i, rr := range set {
		plain[i] = dns.Copy(rr)
		plain[i].Header().Name = `\` + name // the same name, otherwise written
	}
	err := sig.Sign(key, plain)
	sig.Hdr.Name = name
	return err
}
