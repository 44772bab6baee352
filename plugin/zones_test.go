package plugin_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin"
)

func TestZonesMatches(t *testing.T) {
	zones := plugin.Zones{"example.org.", "sub.example.org.", "b.example.net.", `odd\.example.com.`}
	for qname, want := range map[string]string{
		"example.org.":            "example.org.",
		"www.example.org.":        "example.org.",
		"WWW.EXAMPLE.ORG.":        "example.org.",
		"sub.example.org.":        "sub.example.org.",
		"a.b.Sub.Example.Org.":    "sub.example.org.",
		"myexample.org.":          "",
		"org.":                    "",
		".":                       "",
		"":                        "",
		"www.example.org":         "example.org.",
		`www\.example.org.`:       "", // one label, www.example
		`www\\.example.org.`:      "example.org.",
		`www\\\.example.org.`:     "",
		`a.b.example.net.`:        "b.example.net.",
		`a\.b.example.net.`:       "",
		`x.odd\.example.com.`:     `odd\.example.com.`,
		"example.org.example.net": "",
	} {
		if got := zones.Matches(qname); got != want {
			t.Errorf("%q: got %q, want %q", qname, got, want)
		}
	}
	if got := (plugin.Zones{"."}).Matches("anything."); got != "." {
		t.Errorf("root: got %q", got)
	}
	if got := (plugin.Zones{".", "org."}).Matches("example.org."); got != "org." {
		t.Errorf("root and longer: got %q", got)
	}
	if got := (plugin.Zones{}).Matches("example.org."); got != "" {
		t.Errorf("no zones: got %q", got)
	}
}

// A zone is the same however it is written in a Corefile; names of queries are written in one way.
func TestZonesInOtherSpelling(t *testing.T) {
	for zone, queries := range map[string][2]string{ // below it, and not
		"ä.org.":           {`WWW.\195\164.org.`, `\195\165.org.`},
		`dec\046imal.org.`: {`www.dec\.imal.org.`, "dec.imal.org."},
		`a\098c.org.`:      {"abc.org.", "xabc.org."},
		"a@b.org.":         {`x.a\@b.org.`, "ab.org."},
		`odd\.org.`:        {`odd\.org.`, "odd.org."},
	} {
		if got := (plugin.Zones{"net.", zone}).Matches(queries[0]); got != zone {
			t.Errorf("%s: %s is in %q", zone, queries[0], got)
		}
		if got := (plugin.Zones{zone}).Matches(queries[1]); got != "" {
			t.Errorf("%s: %s is in %q", zone, queries[1], got)
		}
		if !plugin.Name(zone).Matches(queries[0]) || plugin.Name(zone).Matches(queries[1]) {
			t.Errorf("%s: the name matches otherwise", zone)
		}
	}
}

func TestRespell(t *testing.T) {
	zones := plugin.Zones{"ä.org.", `a@b.dec\046imal.\097.org.`, "example.org.", ".", "a..b"}
	zones.Respell()
	if want := []string{`\195\164.org.`, `a\@b.dec\.imal.a.org.`, "example.org.", ".", "a..b"}; !slices.Equal(zones, want) {
		t.Errorf("%q, want %q", zones, want)
	}
}

func TestNormalize(t *testing.T) {
	zones := plugin.Zones{"Example.ORG", "example.net.", ""}
	zones.Normalize()
	if zones[0] != "example.org." || zones[1] != "example.net." || zones[2] != "." {
		t.Errorf("got %q", zones)
	}
}

func TestNameMatches(t *testing.T) {
	for _, tc := range []struct {
		name, child string
		want        bool
	}{
		{"example.org.", "www.example.org.", true},
		{"example.org.", "example.org.", true},
		{"example.org", "EXAMPLE.org.", true},
		{"example.org.", "org.", false},
		{"example.org.", "anexample.org.", false},
		{".", "org.", true},
	} {
		if got := plugin.Name(tc.name).Matches(tc.child); got != tc.want {
			t.Errorf("%q above %q: %t", tc.name, tc.child, got)
		}
	}
}

func FuzzZonesMatches(f *testing.F) {
	f.Add("example.org.", "www.example.org.")
	f.Add(`a\.b.`, `x.a\.b.`)
	f.Fuzz(func(t *testing.T, zone, name string) {
		zones := plugin.Zones{zone}
		zones.Normalize()
		if got := zones.Matches(name); got != "" && got != zones[0] {
			t.Errorf("%q is no zone of the list", got)
		}
		if zones.Matches(zones[0]) != zones[0] {
			t.Errorf("%q does not match itself", zones[0])
		}
	})
}

func BenchmarkZonesMatches(b *testing.B) {
	zones := plugin.Zones{"cluster.local.", "in-addr.arpa.", "ip6.arpa."}
	b.ReportAllocs()
	for b.Loop() {
		zones.Matches("www.default.svc.cluster.local.")
	}
}

// What there is to do about spelling is little where names and zones are written in one way, as they are.
func BenchmarkZones(b *testing.B) {
	var zones plugin.Zones
	for i := range 1000 {
		zones = append(zones, fmt.Sprintf("zone%d.example.org.", i))
	}
	for what, name := range map[string]string{"plain": "www.zone0.example.org.", "escaped": `\195\164.zone0.example.org.`} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				zones.Matches(name)
			}
		})
	}
}
