package fetch

import (
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
	relay := zone.Record{Owner: origin, Type: dns.TypeAMTRELAY, RData: []byte{10, 0x81, 192, 0, 2, 1}} // RFC 8777 §4.2.2
	if err := check(relay); err != nil {
		t.Error(err)
	}
}
