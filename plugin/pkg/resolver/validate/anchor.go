package validate

import (
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// This file is what following the keys of an anchor (RFC 5011) asks of DNSKEY RRsets.

// SpeaksFor reports whether a configured anchor of a zone speaks for a key: its RDATA.
func (a *Anchor) SpeaksFor(zone, rdata string) bool {
	if slices.Contains(a.Keys, rdata) {
		return true
	}
	return slices.ContainsFunc(a.DS, func(ds string) bool { return matches(zone, ds, rdata) })
}

// matches reports whether the RDATA of a DS record is that of a key.
func matches(zone, ds, rdata string) bool {
	d, ok := parseDS(ds)
	k := parseKey(rdata)
	return ok && k != nil && d.tag == k.tag && d.algorithm == k.algorithm && digests[d.kind] != 0 && d.of(zone, k)
}

// Without is a without what speaks for keys that have ended. If nothing else is left, these stay as revoked ones, which
// no zone can sign by: without records it would be no anchor, and its zone insecure.
func (a *Anchor) Without(zone string, ended []string) *Anchor {
	speaks := func(ds string) bool {
		return slices.ContainsFunc(ended, func(rdata string) bool { return matches(zone, ds, rdata) })
	}
	b := *a
	b.DS = slices.DeleteFunc(slices.Clone(a.DS), speaks)
	b.Keys = slices.DeleteFunc(slices.Clone(a.Keys), func(k string) bool { return slices.Contains(ended, k) })
	if len(b.DS)+len(b.Keys) == 0 {
		for _, r := range ended {
			b.Keys = append(b.Keys, r[:1]+string([]byte{r[1] | flagRevoke})+r[2:])
		}
	}
	return &b
}

// SignedBy reports whether a zone's DNSKEY RRset has a good signature by a key, which may have the REVOKE
// flag (RFC 5011 §2.1).
func (c *Config) SignedBy(set *rrset.Set, zone, rdata string, now time.Time) (signed bool) {
	k := parseKey(rdata)
	if k == nil || k.public == nil || k.flags&flagZone == 0 {
		return false
	}
	t := New(c, Question{zone, rrset.TypeDNSKEY}, nil, now)
	data, tries := rdatas(set), c.Budget.Sigs
	set.EachSig(func(r string) bool {
		g, ok := parseSig(r)
		if !ok || g.tag != k.tag || g.algorithm != k.algorithm || t.fits(&g, set, zone) != 0 {
			return true
		}
		signed = k.verify(signedData(nil, set, &g, data), g.bytes)
		tries--
		return !signed && tries > 0
	})
	return signed
}

// SignatureLeft is how long the signature of an RRset that ends last has to go.
func SignatureLeft(set *rrset.Set, now time.Time) (left time.Duration) {
	set.EachSig(func(r string) bool {
		if g, ok := parseSig(r); ok {
			left = max(left, time.Duration(int32(g.expiration-uint32(now.Unix())))*time.Second)
		}
		return true
	})
	return left
}
