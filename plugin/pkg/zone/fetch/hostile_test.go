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
