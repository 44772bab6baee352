package zone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// ttls is the TTLs of a name's records, by types.
func ttls(z *Zone, name string) (all string) {
	n, _ := z.Lookup(wire.MustName(name), wire.Hash(wire.MustName(name)))
	for set := range n.Sets() {
		for s := set; s != nil; s = s.Signatures() {
			for r := s.Records(); len(r) > 0; r = r.Next() {
				all += fmt.Sprintf(" %s %d", typeText(s.Type()), r.TTL())
			}
		}
	}
	return strings.TrimSpace(all)
}

const uneven = apex + `www 300 A 192.0.2.1
www 60 A 192.0.2.2
www 300 RRSIG A 13 3 300 20450101000000 20200101000000 1 example.org. d3d3
www 900 TXT x
www 900 RRSIG TXT 13 3 900 20450101000000 20200101000000 1 example.org. d3d3
www 30 RRSIG NSEC 13 3 900 20450101000000 20200101000000 1 example.org. d3d3
`

// Signatures have the TTL of what they cover; those of different types are not one RRset.
func TestEvenTTLs(t *testing.T) {
	z := build(t, "example.org.", uneven)
	if got, want := ttls(z, "www.example.org"), "A 60 A 60 RRSIG 60 TXT 900 RRSIG 900 RRSIG 30"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What a digest is made over stays as it is.
func TestDigestKeepsTTLs(t *testing.T) {
	z := build(t, "example.org.", uneven+"@ ZONEMD 7 1 1 "+strings.Repeat("00", 48)+"\n")
	if got, want := ttls(z, "www.example.org"), "A 300 A 60 RRSIG 300 TXT 900 RRSIG 900 RRSIG 30"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An edit that adds a record with another TTL makes the RRset even again.
func TestEditKeepsTTLsEven(t *testing.T) {
	z := build(t, "example.org.", apex+"www 300 A 192.0.2.1\n")
	e := z.Edit(t.Logf)
	if err := e.Add(wire.MustName("www.example.org"), wire.TypeA, 60, []byte{192, 0, 2, 2}); err != nil {
		t.Fatal(err)
	}
	next, err := e.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ttls(next, "www.example.org"), "A 60 A 60"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
