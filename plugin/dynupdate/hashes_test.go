package dynupdate

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/signing"

	"github.com/miekg/dns"
)

// checkHashes looks at the chain of NSEC3 records from outside, as RFC 5155 §7.1 wants it.
func checkHashes(t testing.TB, all map[string]map[uint16][]dns.RR) {
	t.Helper()
	apex := all["example.org."]
	if p := apex[dns.TypeNSEC3PARAM]; len(p) != 1 || p[0].(*dns.NSEC3PARAM).Iterations != 0 || p[0].(*dns.NSEC3PARAM).Salt != "" {
		t.Errorf("parameters %v", p)
	}
	want, names := map[string][]uint16{}, map[string]string{}
	count := 0
	for name, sets := range all {
		if sets[dns.TypeNSEC] != nil {
			t.Errorf("%s has an NSEC record", name)
		}
		if sets[dns.TypeNSEC3] != nil {
			count++
			continue
		}
		if hidden(all, "example.org.", name) {
			continue
		}
		types := slices.Sorted(maps.Keys(sets))
		if name != "example.org." && sets[dns.TypeNS] != nil {
			types = slices.DeleteFunc(types, func(t uint16) bool { return t != dns.TypeNS && t != dns.TypeDS && t != dns.TypeRRSIG })
		}
		hash := dns.HashName(name, dns.SHA1, 0, "")
		want[hash], names[hash] = types, name
		for up := name; up != "example.org."; { // empty non-terminals
			at, _ := dns.NextLabel(up, 0)
			up = up[at:]
			if hash := dns.HashName(up, dns.SHA1, 0, ""); all[up] == nil {
				want[hash], names[hash] = nil, up
			}
		}
	}
	if count != len(want) {
		t.Errorf("%d NSEC3 records, want %d", count, len(want))
	}
	hashes := slices.Sorted(maps.Keys(want))
	for i, hash := range hashes {
		sets := all[strings.ToLower(hash)+".example.org."]
		if len(sets[dns.TypeNSEC3]) != 1 {
			t.Errorf("%s has no NSEC3 record", names[hash])
			continue
		}
		rec := sets[dns.TypeNSEC3][0].(*dns.NSEC3)
		if next := hashes[(i+1)%len(hashes)]; !strings.EqualFold(rec.NextDomain, next) {
			t.Errorf("behind %s is %s, want %s", names[hash], rec.NextDomain, next)
		}
		if !slices.Equal(rec.TypeBitMap, want[hash]) || rec.Flags != 0 || rec.Iterations != 0 || rec.Salt != "" {
			t.Errorf("%s has %v, want types %v", names[hash], rec, want[hash])
		}
		if soa := apex[dns.TypeSOA][0].(*dns.SOA); rec.Hdr.Ttl != min(soa.Hdr.Ttl, soa.Minttl) {
			t.Errorf("%v has not the TTL of denials", rec)
		}
	}
}

// TestDenialsOfAnotherKind: with nsec3, and without it again, the whole zone is signed anew in one change, and nothing
// of the other kind is left; nor is it when the zone is not to be signed any more.
func TestDenialsOfAnotherKind(t *testing.T) {
	dir := t.TempDir()
	key := newKey(t, dir, dns.ECDSAP256SHA256)
	options := "database " + filepath.Join(dir, "zone.db") + "\nsign key file " + key
	for i, kind := range []string{"", " nsec3", "", " nsec3"} {
		b := newBed(t, dir, options+kind)
		v := b.d.store.durable
		checkSigned(t, v, 1, time.Now())
		if hashes := recordsOf(t, v)["example.org."][dns.TypeNSEC3PARAM] != nil; hashes != (kind != "") {
			t.Errorf("sign %q: NSEC3 is %v", kind, hashes)
		}
		if serial := v.Serial(); serial != 11+uint32(i) {
			t.Errorf("serial %d, want %d: one change each", serial, 11+i)
		}
		b.stop()
	}
	b := newBed(t, dir, "database "+filepath.Join(dir, "zone.db"))
	for name, sets := range recordsOf(t, b.d.store.durable) {
		for typ := range sets {
			if signing.Manages(typ) {
				t.Errorf("%s still has records of type %s", name, dns.TypeToString[typ])
			}
		}
	}
}
