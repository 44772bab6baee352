package zone

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// The owners of an RRset's records lead to a name with few pointers, however many records there are: clients bound
// how many they follow, Go's own resolver to 10, dnspython to 16, github.com/miekg/dns and this server to 126.
func TestOwnersTakeFewPointers(t *testing.T) {
	const n = 200
	text := apex + "alias CNAME big\nsrv SRV 1 1 1 many\n"
	for i := range n {
		text += fmt.Sprintf("sub NS ns%d.sub\nns%d.sub A 192.0.2.1\nbig TXT %d\nbig SRV 1 1 %d big\nmany A 10.0.0.%d\n*.wild CAA 0 issue x%d\n", i, i, i, i, i, i)
	}
	z := build(t, "example.org.", text)
	for _, q := range []struct {
		name string
		typ  uint16
		recs int // at least
	}{
		{"x.sub", dns.TypeA, 2 * n}, {"alias", dns.TypeTXT, 1 + n}, {"alias", dns.TypeSRV, 1 + n}, {"srv", dns.TypeSRV, 1 + n},
		{"big", dns.TypeTXT, n}, {"x.wild", dns.TypeCAA, n},
	} {
		for _, name := range []string{q.name + ".example.org.", strings.ToUpper(q.name) + ".Example.org."} {
			m := new(dns.Msg).SetQuestion(name, q.typ)
			p, err := m.Pack()
			var query wire.Query
			if err != nil || !query.Parse(p) {
				t.Fatalf("%s: %v", name, err)
			}
			var w wire.Reply
			w.Reset(make([]byte, 0, wire.MaxMessage))
			var a Answerer
			a.Answer(z, &w, &query)
			if got := len(w.Recs()); got < q.recs {
				t.Errorf("%s %s: %d records", name, dns.Type(q.typ), got)
			}
			for i, r := range w.Recs() {
				if hops := pointersAt(w.Bytes(), int(r.Off)); hops > 3 {
					t.Errorf("%s %s: the owner of record %d takes %d pointers", name, dns.Type(q.typ), i, hops)
					break
				}
			}
			// What is too long for a client is compressed anew, for which each owner is read.
			if err := m.Unpack(w.Finish(&query, dns.MinMsgSize)); err != nil {
				t.Errorf("%s %s: cut: %v", name, dns.Type(q.typ), err)
			}
		}
	}
}

// pointersAt is how many pointers the name at off leads over.
func pointersAt(msg []byte, off int) (hops int) {
	for msg[off] != 0 {
		if msg[off] < 0xC0 {
			off += 1 + int(msg[off])
			continue
		}
		off = int(binary.BigEndian.Uint16(msg[off:]) &^ 0xC000)
		hops++
	}
	return hops
}
