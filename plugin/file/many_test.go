package file

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// BenchmarkManyZones asks ten thousand zones of ten hosts, and one zone with the same hundred thousand names: finding the
// zone must cost little.
func BenchmarkManyZones(b *testing.B) {
	const zones, hosts = 10000, 10
	head := "$TTL 3600\n@ SOA ns1 host 1 7200 3600 1209600 300\n@ NS ns1\nns1 A 192.0.2.53\n"
	load := func(origin, text string) *Zone {
		z := NewZone(origin, "")
		l := loader{ctx: context.Background(), origin: z.name, file: "db", serial: -1}
		v, err := l.load(strings.NewReader(text), nil)
		if err != nil {
			b.Fatal(err)
		}
		z.Replace(v)
		return z
	}
	var few, all strings.Builder
	few.WriteString(head)
	all.WriteString(head)
	for j := range hosts {
		fmt.Fprintf(&few, "h%d A 192.0.2.%d\n", j, j)
	}
	many := map[string]*Zone{}
	for i := range zones {
		for j := range hosts {
			fmt.Fprintf(&all, "h%d.z%d A 192.0.2.%d\n", j, i, j)
		}
		name := fmt.Sprintf("z%d.example.", i)
		many[name] = load(name, few.String())
	}
	one := map[string]*Zone{"example.": load("example.", all.String())}
	r := rand.New(rand.NewPCG(1, 2))
	packets := make([][]byte, 1<<16)
	for i := range packets {
		packets[i] = query(b, fmt.Sprintf("h%d.z%d.example.", r.IntN(hosts), r.IntN(zones)), "A", false)
	}
	for name, zones := range map[string]map[string]*Zone{"many": many, "one": one} {
		b.Run(name, func(b *testing.B) {
			l := &lane{h: File{index: NewIndex(zones)}, buf: make([]byte, 4096)}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if !l.ask(packets[i&(len(packets)-1)]) || l.w.Count(wire.Answer) != 1 {
					b.Fatal("not answered in the wire lane")
				}
				i++
			}
		})
	}
}
