package zone

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// TestReadAhead: what is read ahead is the node of the name, nearly always, in a zone that was built and in one that grows.
func TestReadAhead(t *testing.T) {
	const names = 40_000
	b := NewBuilder(wire.MustName("example.org."), t.Logf)
	add := func(s string) {
		t.Helper()
		rr, err := dns.NewRR(s)
		if err == nil {
			err = b.AddRR(rr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add("example.org. 300 IN SOA ns.example.org. host.example.org. 1 2 3 4 5")
	add("example.org. 300 IN NS ns.example.org.")
	for i := range names {
		add(fmt.Sprintf("n%d.example.org. 300 IN A 192.0.2.1", i))
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	grown, err := built.Growing()
	if err != nil {
		t.Fatal(err)
	}
	for _, z := range []*Zone{built, grown} {
		z.Fetch()
		if !z.Large() {
			t.Errorf("a zone of %d octets is not large", z.Size())
		}
		others := 0 // of the same hash, as far as an index has it
		for i := range names {
			name := wire.MustName(fmt.Sprintf("n%d.example.org.", i))
			n, _ := z.node(name, wire.Hash(name))
			switch place := z.candidate(wire.Hash(name)); {
			case place == 0:
				t.Fatalf("n%d: nothing", i)
			case &z.at(place)[0] != &n[0]:
				others++
			}
			for left := readahead.First; left > 0; left-- {
				z.ReadAhead(wire.Hash(name), left)
			}
		}
		if others > 10 {
			t.Errorf("%d of %d are other names' nodes", others, names)
		}
		missing := 0
		for i := range names {
			if z.candidate(wire.Hash(wire.MustName(fmt.Sprintf("m%d.example.org.", i)))) == 0 {
				missing++
			}
		}
		if missing < names-10 {
			t.Errorf("%d of %d names that there are not lead nowhere", missing, names)
		}
	}
}

// BenchmarkReadAhead looks names of a zone up that is in no cache of the processor, in batches.
func BenchmarkReadAhead(b *testing.B) {
	const names = 1 << 20
	builder := NewBuilder(wire.MustName("example.org."), b.Logf)
	for i := range names {
		rr := &dns.A{Hdr: dns.RR_Header{Name: fmt.Sprintf("n%d.example.org.", i), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: []byte{192, 0, 2, 1}}
		if err := builder.AddRR(rr); err != nil {
			b.Fatal(err)
		}
	}
	soa, _ := dns.NewRR("example.org. 300 IN SOA ns.example.org. host.example.org. 1 2 3 4 5")
	if err := builder.AddRR(soa); err != nil {
		b.Fatal(err)
	}
	z, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	asked := make([][]byte, 1<<16)
	hashes := make([]uint64, len(asked))
	for i := range asked {
		asked[i] = wire.MustName(fmt.Sprintf("n%d.example.org.", i*7919%names))
		hashes[i] = wire.Hash(asked[i])
	}
	for _, ahead := range []bool{false, true} {
		b.Run(fmt.Sprintf("ahead=%t", ahead), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				at := i % len(asked)
				if ahead {
					z.ReadAhead(hashes[(at+2)%len(asked)], 2)
					z.ReadAhead(hashes[(at+1)%len(asked)], 1)
				}
				n, ok := z.Lookup(asked[at], hashes[at])
				if !ok || n.Empty() {
					b.Fatal("a name is not there")
				}
			}
		})
	}
}
