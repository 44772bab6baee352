package file

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// TestWrittenIsRead: a zone that is written, as secondary and sign do, is read as what it was, whatever octets its names have.
func TestWrittenIsRead(t *testing.T) {
	origin := wire.MustName("example.org")
	b := zone.NewBuilder(origin, t.Logf)
	soa := append(append(bytes.Clone(origin), origin...), make([]byte, 20)...)
	if err := b.Add(origin, wire.TypeSOA, 300, soa); err != nil {
		t.Fatal(err)
	}
	for c := range 256 {
		if 'A' <= c && c <= 'Z' {
			continue
		}
		for _, label := range []string{string([]byte{byte(c)}), string([]byte{byte(c), 'x'}), string([]byte{'x', byte(c)}), string([]byte{byte(c)}) + "include"} {
			owner := append(append([]byte{byte(len(label))}, label...), origin...)
			for typ, data := range map[uint16][]byte{wire.TypeA: {192, 0, 2, 1}, wire.TypeCNAME + 60000: owner, wire.TypeNS: owner} {
				if err := b.Add(owner, typ, 300, data); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := z.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	l := loader{ctx: t.Context(), origin: origin, file: "db", serial: -1}
	back, err := l.load(&text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := recordsOf(z), recordsOf(back); !slices.Equal(got, want) || len(got) < 2000 {
		t.Errorf("%d records were written, %d read, or they differ", len(want), len(got))
	}
}

// recordsOf is all records of a zone, in order.
func recordsOf(z *zone.Zone) (all []string) {
	w := z.Walk()
	for r, ok := w.Next(); ok; r, ok = w.Next() {
		all = append(all, fmt.Sprintf("%x %d %d %x", r.Owner, r.Type, r.TTL, r.RData))
	}
	return all
}
