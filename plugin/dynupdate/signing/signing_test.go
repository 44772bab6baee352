package signing

import (
	"crypto"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

var now = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// keyOf is a key of example.org.
func keyOf(t *testing.T) zonekeys.Pair {
	t.Helper()
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	secret, err := k.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	return zonekeys.Pair{Public: k, Private: secret.(crypto.Signer), KeyTag: k.KeyTag()}
}

// unsigned is a version of example.org.
func unsigned(t *testing.T) *zone.Zone {
	t.Helper()
	origin, err := wire.LowerName("example.org.")
	if err != nil {
		t.Fatal(err)
	}
	b := zone.NewBuilder(origin, t.Logf)
	for _, line := range []string{
		"@ SOA ns h 1 2 3 4 60", "@ NS ns", "ns A 192.0.2.1", "b.c A 192.0.2.2", "sub NS ns.sub", "ns.sub A 192.0.2.3", "www A 192.0.2.4", "z A 192.0.2.5",
	} {
		var rr dns.RR
		zp := dns.NewZoneParser(strings.NewReader(line), "example.org.", "")
		zp.SetDefaultTTL(300)
		rr, _ = zp.Next()
		if err := zp.Err(); err != nil {
			t.Fatal(err)
		}
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Build()
	if err == nil {
		v, err = v.Growing()
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// changed is the version after a change, completed.
func changed(t *testing.T, g *Signer, v *zone.Zone, at time.Time, change func(c *zone.Change)) *zone.Zone {
	t.Helper()
	c := v.Change()
	change(c)
	apex := c.At(v.Origin())
	var soa []byte
	for rdata := range apex.RDatas(dns.TypeSOA) {
		soa = slices.Clone(rdata)
	}
	apex.RemoveType(dns.TypeSOA)
	soa[len(soa)-17]++ // the serial
	if err := apex.Add(dns.TypeSOA, 300, soa); err != nil {
		t.Fatal(err)
	}
	names := c.Names()
	plain, delta, err := c.Zone()
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := g.Complete(v, plain, delta, names, at)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// records is those of a version as text, by owner and type; of signatures, by the type that is signed.
func records(t *testing.T, v *zone.Zone) map[string]string {
	t.Helper()
	all := map[string]string{}
	w := v.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			t.Fatal(err)
		}
		key := rr.Header().Name + " " + dns.Type(rec.Type).String()
		if sig, ok := rr.(*dns.RRSIG); ok {
			key += " " + dns.Type(sig.TypeCovered).String()
		}
		all[key] += rr.String()
	}
	return all
}

// A zone is signed as a whole once, then where it changes, and not any more when the keys are taken away.
func TestComplete(t *testing.T) {
	for _, nsec3 := range []bool{false, true} {
		t.Run(fmt.Sprint("NSEC3 ", nsec3), func(t *testing.T) {
			before := unsigned(t)
			g := New(before.Origin(), []zonekeys.Pair{keyOf(t)}, nsec3)
			if due, whole := g.Due(before, now); !whole || len(due) == 0 {
				t.Errorf("an unsigned zone: %d names are due, all of them %t", len(due), whole)
			}
			v := changed(t, g, before, now, func(*zone.Change) {})
			signed := records(t, v)
			for key, want := range map[string]bool{
				"www.example.org. RRSIG A": true, "b.c.example.org. RRSIG A": true, "example.org. RRSIG DNSKEY": true, "example.org. RRSIG NS": true,
				"sub.example.org. RRSIG NS": false, "ns.sub.example.org. RRSIG A": false, "www.example.org. NSEC": !nsec3, "example.org. NSEC3PARAM": nsec3,
			} {
				if got := signed[key] != ""; got != want {
					t.Errorf("%s is there: %t", key, got)
				}
			}
			if due, _ := g.Due(v, now); len(due) > 0 {
				t.Errorf("of a zone that was signed, %d names are due", len(due))
			}
			x := append([]byte{1, 'x'}, before.Origin()...)
			next := changed(t, g, v, now, func(c *zone.Change) {
				if err := c.At(x).Add(dns.TypeA, 300, []byte{192, 0, 2, 9}); err != nil {
					t.Fatal(err)
				}
			})
			other := 0
			for key, text := range records(t, next) {
				if signed[key] != text {
					other++
				}
			}
			// The record, the SOA record, two links of the chain, and the signatures of all four.
			if other != 8 {
				t.Errorf("%d RRsets are others than before, want 8", other)
			}
			if due, _ := g.Due(next, now.Add(validity-renewBefore-time.Hour)); len(due) > 0 {
				t.Errorf("before the last week %d names are due", len(due))
			}
			if due, whole := g.Due(next, now.Add(validity+mostJitter-renewBefore+time.Hour)); len(due) < 4 || whole {
				t.Errorf("in the last week %d names are due, all of them %t", len(due), whole)
			}
			bare := changed(t, New(before.Origin(), nil, false), next, now, func(*zone.Change) {})
			if got, want := len(records(t, bare)), len(records(t, before))+1; got != want {
				t.Errorf("without keys %d RRsets are there, want %d", got, want)
			}
		})
	}
}
