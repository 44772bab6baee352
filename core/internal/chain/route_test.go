package chain

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

func routes(t *testing.T, blocks ...*block) *router {
	r, err := newRouter(blocks)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func zoneBlock(zone, name string) *block { return &block{Block: Block{Zone: zone, View: &name}} }

func TestRoute(t *testing.T) {
	root, org, sub, deep, test := zoneBlock(".", "root"), zoneBlock("example.org.", "org"), zoneBlock("sub.example.org.", "sub"), zoneBlock("a.b.sub.example.org.", "deep"), zoneBlock("test.", "test")
	all := routes(t, root, org, sub, deep, test)
	noRoot := routes(t, org, sub, deep, test)
	for _, tc := range []struct {
		r    *router
		name string
		ds   bool
		want string
	}{
		{all, "example.org", false, "org"},
		{all, "www.example.org", false, "org"},
		{all, "x.sub.example.org", false, "sub"},
		{all, "b.sub.example.org", false, "sub"},
		{all, "a.b.sub.example.org", false, "deep"},
		{all, "notexample.org", false, "root"},
		{all, "org", false, "root"},
		{all, ".", false, "root"},
		{noRoot, "org", false, ""},
		{noRoot, ".", false, ""},
		// DS: the closest zone above.
		{all, "sub.example.org", true, "org"},
		{all, "a.b.sub.example.org", true, "sub"},
		{all, "www.sub.example.org", true, "sub"},
		{all, "example.org", true, "org"}, // the root does not go before the own block
		{all, "test", true, "test"},
		{all, "other", true, "root"},
		{noRoot, "example.org", true, "org"},
		{noRoot, "other", true, ""},
	} {
		b := tc.r.route(question{name: wire.MustName(tc.name), ds: tc.ds}, func(*block) bool { return true })
		got := ""
		if b != nil {
			got = *b.View
		}
		if got != tc.want {
			t.Errorf("%s (DS %v): got %q, want %q", tc.name, tc.ds, got, tc.want)
		}
	}
}

// Blocks of one zone are asked in their order; when all refuse, the parent zone's are.
func TestRouteViews(t *testing.T) {
	r := routes(t, zoneBlock("example.org.", "one"), zoneBlock("example.org.", "two"), zoneBlock("org.", "parent"))
	name := wire.MustName("www.example.org")
	for _, tc := range []struct {
		refuse string
		want   string
	}{{"", "one"}, {"one", "two"}, {"onetwo", "parent"}, {"onetwoparent", ""}} {
		b := r.route(question{name: name}, func(b *block) bool {
			for _, s := range []string{"one", "two", "parent"} {
				if s == *b.View && strings.Contains(tc.refuse, s) {
					return false
				}
			}
			return true
		})
		got := ""
		if b != nil {
			got = *b.View
		}
		if got != tc.want {
			t.Errorf("refusing %q: got %q, want %q", tc.refuse, got, tc.want)
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	r, _ := newRouter([]*block{zoneBlock(".", ""), zoneBlock("cluster.local.", ""), zoneBlock("example.org.", "")})
	name := wire.MustName("svc-17.ns-3.svc.cluster.local")
	takes := func(*block) bool { return true }
	b.ReportAllocs()
	for b.Loop() {
		if r.route(question{name: name}, takes) == nil {
			b.Fatal("no block")
		}
	}
}
