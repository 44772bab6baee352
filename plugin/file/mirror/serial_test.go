package mirror

import (
	"context"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Zones that are transferred have serials that rise with changes alone, from the time of the start on; others, and those whose
// serial is ahead of the time, have the provider's.
func TestSerials(t *testing.T) {
	const www = "www.example.org. 60 A 192.0.2.1"
	start := time.Unix(1<<30, 0)
	for _, tc := range []struct {
		transferred bool
		provider    string
		want        [4]uint32 // at the start; as it was; changed; changed in the same second
	}{
		{true, "1", [4]uint32{1 << 30, 1 << 30, 1<<30 + 100, 1<<30 + 101}},
		{false, "1", [4]uint32{1, 1, 1, 1}},
		{true, "2026010100", [4]uint32{2026010100, 2026010100, 2026010100, 2026010100}},
	} {
		soa := "example.org. 300 IN SOA ns.example.org. host.example.org. " + tc.provider + " 2 3 4 5"
		p := &provider{zones: map[string][]string{"z": {soa, www}}}
		m, err := New(Config{Plugin: "mirrored", Hosted: []Hosted{{"example.org.", "z"}}, Fetch: p.fetch,
			Next: func() plugin.Handler { return nil }, Fall: func() fall.F { return fall.F{} }})
		if err != nil {
			t.Fatal(err)
		}
		z := m.zones[0]
		read := func(now time.Time, zone ...string) uint32 {
			t.Helper()
			p.zones["z"] = zone
			records, err := p.fetch(context.Background(), z.Hosted, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			v, err := z.version(wire.MustName("example.org"), records, z.zone.Current(), now)
			if err != nil {
				t.Fatal(err)
			}
			z.zone.Replace(v)
			return v.Serial()
		}
		read(start, soa, www)
		if err := m.number(func(string) bool { return tc.transferred }, start); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, m, "www.example.org.", dns.TypeA); got != "NOERROR aa A 192.0.2.1" {
			t.Error(got)
		}
		then := start.Add(100 * time.Second)
		got := [4]uint32{z.zone.Current().Serial(), read(then, soa, www), read(then, soa, www, "new.example.org. 60 A 192.0.2.2"), read(then, soa, www)}
		if got != tc.want {
			t.Errorf("%+v: got %d", tc, got)
		}
	}
}
