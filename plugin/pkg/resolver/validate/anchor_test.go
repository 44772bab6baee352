package validate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// An anchor all of whose keys are revoked stays one: what was signed by them is bogus, and the zone is
// not taken for one that nobody signs.
func TestAllKeysOfAnchorRevoked(t *testing.T) {
	w, root, z := lab(t, dns.ECDSAP256SHA256)
	key := rdataOf(t, root.key)
	m := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), nil)
	byDS := w.conf.Anchors[rrset.Root]
	for what, a := range map[string]*Anchor{"DS": byDS, "DNSKEY": {Keys: []string{key}}} {
		w.conf.Anchors[rrset.Root] = a
		w.want(what, w.judge("www.example.", dns.TypeA, m), Secure, 0)
		w.conf.Anchors[rrset.Root] = a.Without(rrset.Root, []string{key})
		w.want(what+" revoked", w.judge("www.example.", dns.TypeA, m), Bogus, dns.ExtendedErrorCodeDNSKEYMissing)
	}
}
