package within_test

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/within"

	"github.com/miekg/dns"
)

func TestCover(t *testing.T) {
	z := within.Zones{From: wire.MustName("example.org."), Except: [][]byte{wire.MustName("a.example.org."), wire.MustName("example.org.")}}
	for name, want := range map[string]bool{
		"example.org.": true, "b.example.org.": false, "a.example.org.": false, "org.": false, "notexample.org.": false,
	} {
		if got := z.Cover(wire.MustName(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	z.Except = z.Except[:1]
	for name, want := range map[string]bool{"b.example.org.": true, "a.example.org.": false, "x.a.example.org.": false} {
		if got := z.Cover(wire.MustName(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if z.MatchMsg(new(dns.Msg)) || !(&within.Zones{From: wire.Root}).MatchMsg(new(dns.Msg)) {
		t.Error("a message without question is about the root")
	}
}

func TestZone(t *testing.T) {
	if name, err := within.Zone("Example.org", []string{"Example.org."}); err != nil || wire.Text(name) != "example.org." {
		t.Errorf("%q %v", name, err)
	}
	for _, all := range [][]string{nil, {"a..b."}} {
		if _, err := within.Zone("odd", all); err == nil || !strings.Contains(err.Error(), "unable to normalize 'odd'") {
			t.Error(err)
		}
	}
}

// Both forms of the question are decided alike.
func FuzzMatch(f *testing.F) {
	f.Add("www.example.org.")
	f.Add("Internal.Example.org.")
	z := within.Zones{From: wire.MustName("example.org."), Except: [][]byte{wire.MustName("internal.example.org.")}}
	f.Fuzz(func(t *testing.T, name string) {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		b, err := m.Pack()
		var q wire.Query
		if err != nil || !q.Parse(b) || m.Unpack(b) != nil {
			return
		}
		if got, want := z.Match(&q), z.MatchMsg(m); got != want {
			t.Errorf("%s: %v on bytes, %v as a message", name, got, want)
		}
		lower := strings.ToLower(m.Question[0].Name)
		want := dns.IsSubDomain("example.org.", lower) && !dns.IsSubDomain("internal.example.org.", lower)
		if got := z.Match(&q); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	})
}
