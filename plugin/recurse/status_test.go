package recurse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// A name that is flushed is denied no more by what is kept of others: a name above it, or the denials of its zone.
func TestFlushedNamesAreNotDenied(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("flushed")}
	now, zone := r.now(), rrset.MustName("example.org.")
	gone := rrset.MustName("gone.example.org.")
	r.conf.Stores.RRsets.Put(gone, wire.TypeA, &store.Entry{Kind: store.NXDomain, Rank: store.AnswerData, TTL: 60, Expires: now.After(60)}, now)
	r.Learn(nil, gone, true, secureOf(zone, signed(t, 2, "example.org. 300 IN SOA a. b. 1 2 3 4 300"), signed(t, 2, "example.org. 300 IN NSEC g.example.org. SOA NS RRSIG NSEC")))
	for _, name := range []string{"b.example.org.", "a.gone.example.org."} {
		k, kept := iterate.Question{Name: rrset.MustName(name), Type: wire.TypeA}, new(iterate.Kept)
		if _, ok := kept.Answer(&r.conf, k, nil, now); !ok {
			t.Errorf("%s is not denied", name)
		}
		r.CacheFlush(status.Match{Name: []byte(k.Name)})
		if res, ok := kept.Answer(&r.conf, k, nil, now); ok {
			t.Errorf("%s is denied after it was flushed: %+v", name, res)
		}
	}
}

func TestStatus(t *testing.T) {
	r := &Recurse{zones: []string{rrset.Root}, resolver: silent(t, func(*settings) {})}
	s, now := r.conf.Stores, r.now()
	fill := func() {
		for name, typ := range map[string]uint16{"www.example.com.": wire.TypeA, "mail.example.com.": wire.TypeAAAA, "example.net.": wire.TypeA} {
			n := rrset.MustName(name)
			s.RRsets.Put(n, typ, &store.Entry{Rank: store.AnswerData, Set: rrset.New(n, typ, 60, "\x01\x02\x03\x04"), TTL: 60, Expires: now.After(60)}, now)
		}
		n := rrset.MustName("no.example.com.")
		s.RRsets.Put(n, wire.TypeA, &store.Entry{Kind: store.NXDomain, Rank: store.AnswerData, TTL: 60, Expires: now.After(60)}, now)
		s.Failures.Note(rrset.MustName("bad.example.com."), wire.TypeA, 22, "silent", now)
		s.Delegations.Put(&store.Delegation{Zone: rrset.MustName("example.com."), Expires: now.After(60)}, now)
	}
	for _, c := range []struct {
		name       string
		below      bool
		typ        uint16
		want       string // entries
		delegation bool   // of example.com. stays
		failure    bool   // stays
	}{
		{".", true, 0, "example.net. A 0, mail.example.com. AAAA 0, no.example.com. ANY 3, www.example.com. A 0", false, false},
		{"example.com.", true, 0, "mail.example.com. AAAA 0, no.example.com. ANY 3, www.example.com. A 0", false, false},
		{"example.com.", false, 0, "", false, true},
		{"www.example.com.", false, wire.TypeA, "www.example.com. A 0", true, true},
		{"www.example.com.", false, wire.TypeAAAA, "", true, true},
	} {
		fill()
		m := status.Match{Name: []byte(rrset.MustName(c.name)), Below: c.below, Type: c.typ}
		var got []string
		r.CacheEntries(m, func(e status.CacheEntry) bool {
			got = append(got, fmt.Sprintf("%s %s %d", e.Name, e.Type, dns.StringToRcode[e.Rcode]))
			return true
		})
		before := r.CacheStatus()
		n := r.CacheFlush(m)
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != c.want || n != len(got) || before.Answers != 4 || r.CacheStatus().Answers != 4-n {
			t.Errorf("%+v: %s, %d flushed of %d", c, text, n, before.Answers)
		}
		if stays := s.Delegations.Get(rrset.MustName("example.com."), now) != nil; stays != c.delegation {
			t.Errorf("%+v: the delegation is there: %v", c, stays)
		}
		if _, stays := s.Failures.Get(rrset.MustName("bad.example.com."), wire.TypeA, now); stays != c.failure {
			t.Errorf("%+v: the failure is there: %v", c, stays)
		}
	}
}
