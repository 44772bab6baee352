package file

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

var (
	_ readahead.Table    = File{}
	_ plugin.WireHandler = File{}
)

// smallZone is a zone of a name with three records.
func smallZone(t *testing.T, name string) *Zone {
	t.Helper()
	b := zone.NewBuilder(wire.MustName(name), t.Logf)
	for _, s := range []string{"SOA ns." + name + " host." + name + " 1 2 3 4 5", "NS ns." + name, "A 192.0.2.1"} {
		rr, err := dns.NewRR(name + " 300 IN " + s)
		if err == nil {
			err = b.AddRR(rr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	z := NewZone(name, "")
	z.store.Replace(v)
	return z
}

// TestReadAhead: among few zones, which are not large, and among many, what is found first is the zone that the query is
// answered from, and then its version.
func TestReadAhead(t *testing.T) {
	for _, n := range []int{1, 20, manyZones} {
		zones := map[string]*Zone{}
		for i := range n {
			zones[fmt.Sprintf("z%d.example.", i)] = nil
		}
		zones["in.z0.example."] = nil
		for name := range zones {
			zones[name] = smallZone(t, name)
		}
		f := File{index: NewIndex(zones)}
		if many := n == manyZones; f.Large() != many {
			t.Errorf("%d zones: large %t", n, !many)
		}
		for i := range n + 1 {
			for _, prefix := range []string{"", "www.", "a.b.c.", "in.", "www.in."} {
				q := new(wire.Query)
				q.SetMsg(new(dns.Msg).SetQuestion(fmt.Sprintf("%sz%d.example.", prefix, i), dns.TypeA), wire.Peer{})
				want, _ := f.index.Find(q)
				if (want != nil) != (i < n) {
					t.Fatalf("%s: %v", wire.Text(q.Lower()), want)
				}
				var found any
				for left := readahead.First; left > 0; left-- {
					found = f.ReadAhead(q, left, found)
					z, _ := found.(*Zone)
					if many := n > fewZones; left == 4 && many && z != want || left != 4 && z != nil {
						t.Fatalf("%s, %d left: found %v", wire.Text(q.Lower()), left, found)
					}
					if v, _ := found.(*zone.Zone); left < 4 && (v == nil) != (want == nil) || v != nil && v != want.store.Load() {
						t.Fatalf("%s, %d left: found %v", wire.Text(q.Lower()), left, found)
					}
				}
			}
		}
	}
}
