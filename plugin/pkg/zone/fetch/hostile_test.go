package fetch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// TestHostileTransfers reads messages as those of a transfer, whose names may all be long: a reverse zone is like that.
func TestHostileTransfers(t *testing.T) {
	wiretest.Compare(t, 40, func(t *testing.T, r *wiretest.Reply) {
		var rd reader
		if err := rd.reset(r.Message, 0); err != nil {
			t.Fatal(err)
		}
		rd.signature()
		for {
			if _, ok, err := rd.next(); err != nil || !ok {
				return
			}
		}
	})
}

// TestCutData: data that ends too early is no data, also where a reader of messages makes zeros of what is missing.
func TestCutData(t *testing.T) {
	rr := records(t, "soa7")[0]
	b := make([]byte, 512)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	rdata := b[len(origin)+10 : n]
	for cut := range len(rdata) {
		rec := zone.Record{Owner: origin, Type: dns.TypeSOA, RData: rdata[:len(rdata)-cut]}
		if err := check(rec); (err == nil) != (cut == 0) {
			t.Errorf("%d octets less: %v", cut, err)
		}
	}
}

// TestCutDataOfTypes: the same holds for types without names in their data, or with fields before them.
func TestCutDataOfTypes(t *testing.T) {
	for _, text := range []string{
		"NSEC3 1 0 5 aabb 2t7b4g4vsa5smi47k61mv5bv1a22bojr A RRSIG", "NSEC3PARAM 1 0 5 aabb", "DNSKEY 257 3 8 AwEAAQ==", "DS 1 8 2 " + strings.Repeat("ab", 32),
		"RRSIG A 8 2 60 20300101000000 20200101000000 1 example.org. AAAA", "TLSA 3 1 1 abcd", "SSHFP 1 1 abcd", "CAA 0 issue \"ca.example\"", "NSEC a.example.org. A TYPE300",
		"CERT 1 0 0 AAAA", "ZONEMD 5 1 1 " + strings.Repeat("ab", 48), "LOC 52 22 23 N 4 53 32 E -2m 0m 10000m 10m", "URI 1 1 \"x\"", "SVCB 1 . alpn=h2 port=53", "HINFO a b",
	} {
		rr := records(t, "example.org. 300 IN "+text)[0]
		b := make([]byte, 512)
		n, err := dns.PackRR(rr, b, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		rdata := b[len(origin)+10 : n]
		if err := check(zone.Record{Owner: origin, Type: rr.Header().Rrtype, RData: rdata}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for cut := 1; cut <= len(rdata); cut++ {
			rec := zone.Record{Owner: origin, Type: rr.Header().Rrtype, RData: rdata[:len(rdata)-cut]}
			if check(rec) != nil {
				continue
			}
			// A shorter digest, key, or list is one, too; then it is read as what it is.
			read, err := rec.RR()
			if err != nil {
				t.Fatal(err)
			}
			again := make([]byte, 512)
			if n, err := dns.PackRR(read, again, 0, nil, false); err != nil || !bytes.Equal(again[len(origin)+10:n], rec.RData) {
				t.Errorf("%s, %d octets less: taken as %v, %v", text, cut, read, err)
			}
		}
	}
}

// TestEmptyData: a record without data is none, unless its type lets it be (RFC 3597 §5); others would be served it.
func TestEmptyData(t *testing.T) {
	for typ, ok := range map[uint16]bool{
		dns.TypeTXT: false, dns.TypeA: false, dns.TypeCAA: false, dns.TypeDS: false, dns.TypeLOC: false, dns.TypeHTTPS: false,
		dns.TypeAPL: true, dns.TypeNULL: true, 65280: true,
	} {
		if err := check(zone.Record{Owner: origin, Type: typ}); (err == nil) != ok {
			t.Errorf("%s: %v", dns.Type(typ), err)
		}
	}
	for data, typ := range map[string]uint16{"\x0a\x81\xc0\x00\x02\x01": dns.TypeAMTRELAY /* RFC 8777 §4.2.2 */, "\x01b\x00\x40\x01": dns.TypeNXT /* RFC 2535 §5.2 */} {
		if err := check(zone.Record{Owner: origin, Type: typ, RData: []byte(data)}); err != nil {
			t.Error(err)
		}
	}
}
