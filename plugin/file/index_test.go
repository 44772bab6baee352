package file

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

func TestIndex(t *testing.T) {
	zones := map[string]*Zone{"missing.example.": nil, "a..b.": NewZone("example.", "")}
	for _, name := range []string{"example.", "sub.example.", "a.b.c.example.", "a-name-that-is-longer-than-the-room-within-the-zone.example.", "com."} {
		zones[name] = NewZone(name, "")
	}
	for i := range 300 {
		name := fmt.Sprintf("z%d.many.example.", i)
		zones[name] = NewZone(name, "")
	}
	x, root := NewIndex(zones), NewIndex(map[string]*Zone{".": NewZone(".", "")})
	for _, tc := range []struct{ name, typ, want string }{
		{"www.example.", "A", "example."},
		{"WWW.Sub.example.", "A", "sub.example."},
		{"sub.example.", "DS", "example."},
		{"www.sub.example.", "DS", "sub.example."},
		{"com.", "DS", "com."},
		{"x.a.b.c.example.", "A", "a.b.c.example."},
		{"b.c.example.", "A", "example."},
		{"x.a-name-that-is-longer-than-the-room-within-the-zone.example.", "A", "a-name-that-is-longer-than-the-room-within-the-zone.example."},
		{"x.z299.many.example.", "A", "z299.many.example."},
		{"z300.many.example.", "A", "example."},
		{"www.missing.example.", "A", "known"},
		{"example.org.", "A", "unknown"},
		{".", "NS", "unknown"},
		{"notexample.", "A", "unknown"},
	} {
		m := new(dns.Msg).SetQuestion(tc.name, dns.StringToType[tc.typ])
		var q wire.Query
		if err := q.SetMsg(m, wire.Peer{}); err != nil {
			t.Fatal(err)
		}
		z, known := x.Find(&q)
		got := "unknown"
		switch {
		case z != nil && known:
			got = z.Origin()
		case known:
			got = "known"
		}
		if got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.name, tc.typ, got, tc.want)
		}
		if z, known := root.Find(&q); !known || z.Origin() != "." {
			t.Errorf("%s %s: not below the root", tc.name, tc.typ)
		}
		if z, known := NewIndex(nil).Find(&q); known || z != nil {
			t.Errorf("%s %s: known without zones", tc.name, tc.typ)
		}
	}
}
