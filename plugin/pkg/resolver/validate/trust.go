package validate

import (
	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// Which keys of a zone are believed (RFC 4035 §5.2): those that a DS record of the parent, or an anchor, speaks for,
// and that have signed the DNSKEY RRset themselves.

// keysOf is the keys of a DNSKEY RRset, of which only so many are looked at.
func (t *Task) keysOf(set *rrset.Set) (keys []*key) {
	octets := 0
	set.Each(func(r string) bool {
		octets += len(r)
		if len(keys) == t.conf.Budget.Keys || octets > mostKeyOctets {
			return false
		}
		if k := parseKey(r); k != nil {
			keys = append(keys, k)
		}
		return true
	})
	return keys
}

const mostKeyOctets = 16 << 10

// trusted is the keys that DS records or anchors speak for. The Finding is
// insecure if none of the records can be used.
func (t *Task) trusted(name string, c *Node, keys []*key) (good []*key, f Finding) {
	usable, odd, tried, unfit, crowded := 0, 0, 0, false, false
	for _, a := range c.anchors {
		if k := parseKey(a); k == nil || !t.serves(name, k.algorithm) || k.public == nil {
			continue
		}
		usable++
		for _, k := range keys {
			if k.rdata == a && k.signs() {
				good = append(good, k)
			}
		}
	}
	ds, unusable := t.usable(name, c.ds)
	usable += len(ds)
	if usable == 0 {
		return nil, unusable
	}
	for i := range ds {
		tagged := t.conf.Budget.Tagged
		for _, k := range keys {
			if k.tag != ds[i].tag || k.algorithm != ds[i].algorithm {
				continue
			}
			if !k.signs() {
				unfit = unfit || k.flags&flagZone == 0
				continue
			}
			if tagged--; tagged < 0 {
				crowded = true
				break
			}
			if tried++; tried > t.conf.Budget.DS {
				t.over = "ds_per_zone"
				break
			}
			if !ds[i].of(name, k) {
				continue
			}
			switch {
			case k.public != nil:
				good = append(good, k)
			case k.odd:
				odd++
			}
		}
	}
	switch {
	case len(good) > 0:
		return good, Finding{Status: Secure}
	case odd >= usable && odd > 0: // all that is spoken for are keys of sizes that are not served
		return nil, Finding{Status: Insecure, Code: dns.ExtendedErrorCodeUnsupportedDNSKEYAlgorithm, Told: true, Text: "key size"}
	}
	if crowded { // it may speak for one that was not looked at
		t.over = "keys_per_tag"
	} else if unfit {
		return nil, bogus(dns.ExtendedErrorCodeNoZoneKeyBitSet, "no zone key matches DS of "+clip(rrset.Text(name)))
	}
	return nil, bogus(dns.ExtendedErrorCodeDNSKEYMissing, "no DNSKEY matches DS of "+clip(rrset.Text(name)))
}

// usable is the DS records of algorithms and digests that are supported; those
// of SHA-1 only if there is no better one (RFC 4509 §3). Without any the
// Finding says why the zone is insecure (RFC 4035 §5.2).
func (t *Task) usable(zone string, all []delegation) (ds []delegation, f Finding) {
	f = Finding{Status: Insecure, Code: dns.ExtendedErrorCodeUnsupportedDNSKEYAlgorithm, Told: true}
	better := false
	for _, d := range all {
		if !t.serves(zone, d.algorithm) {
			continue
		}
		if !t.conf.Digests[d.kind] || digests[d.kind] == 0 {
			f.Code = dns.ExtendedErrorCodeUnsupportedDSDigestType
			continue
		}
		better = better || d.kind != dns.SHA1
		ds = append(ds, d)
	}
	if better {
		kept := ds[:0]
		for _, d := range ds {
			if d.kind != dns.SHA1 {
				kept = append(kept, d)
			}
		}
		ds = kept
	}
	return ds[:min(len(ds), t.conf.Budget.DS)], f
}

// serves reports whether keys of an algorithm are believed in a zone.
func (t *Task) serves(zone string, algorithm uint8) bool {
	if t.conf.Algorithms[algorithm] {
		return true
	}
	a := t.conf.Anchors[zone]
	return a != nil && a.Own[algorithm]
}
