package msg_test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/etcd/msg"
)

func TestPath(t *testing.T) {
	for _, tc := range []struct{ name, prefix, want string }{
		{"a.web.staging.skydns.local.", "skydns", "/skydns/local/skydns/staging/web/a"},
		{"a.web.staging.skydns.local", "skydns", "/skydns/local/skydns/staging/web/a"},
		{"x.skydns.local.", "/skydns/", "/skydns/local/skydns/x"},
		{"x.skydns.local.", "a/b", "/a/b/local/skydns/x"},
		{"x.skydns.local.", "", "/local/skydns/x"},
		{"svc.ns.svc.cluster.local.", "c", "/c/local/cluster/svc/ns/svc"},
		{"X.local.", "skydns", "/skydns/local/X"},
		{"*.local.", "skydns", "/skydns/local/*"},
		{`a\.b.local.`, "skydns", `/skydns/local/a\.b`},
		{".", "skydns", "/skydns"},
		{"", "skydns", "/skydns"},
		{".", "", "/"},
	} {
		if got := msg.Path(tc.name, tc.prefix); got != tc.want {
			t.Errorf("%q under %q: got %q, want %q", tc.name, tc.prefix, got, tc.want)
		}
	}
}

func TestPathWithWildcard(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		wildcard   bool
	}{
		{"a.skydns.local.", "/skydns/local/skydns/a", false},
		{"*.skydns.local.", "/skydns/local/skydns", true},
		{"any.skydns.local.", "/skydns/local/skydns", true},
		{"x.*.skydns.local.", "/skydns/local/skydns", true},
		{"*.x.any.skydns.local.", "/skydns/local/skydns", true},
		{"*.local.*.", "/skydns", true},
		{"*.", "/skydns", true},
		{"anyone.x*.local.", "/skydns/local/x*/anyone", false},
		{".", "/skydns", false},
	} {
		if got, wildcard := msg.PathWithWildcard(tc.name, "skydns"); got != tc.want || wildcard != tc.wildcard {
			t.Errorf("%q: got %q, %t, want %q, %t", tc.name, got, wildcard, tc.want, tc.wildcard)
		}
	}
}

func TestDomain(t *testing.T) {
	for key, want := range map[string]string{
		"/skydns/local/skydns/staging/web/a":  "a.web.staging.skydns.local.",
		"/skydns/local/skydns/staging/web/a/": "a.web.staging.skydns.local.",
		"/skydns/local//skydns/x":             "x.skydns.local.",
		"skydns/local/skydns":                 "skydns.local.",
		"/c/org/example":                      "example.org.",
		"/skydns/local":                       "local.",
		"/skydns":                             ".",
		"/":                                   ".",
		"":                                    ".",
	} {
		if got := msg.Domain(key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("a.web.staging.skydns.local.")
	f.Add("x.*.any.local.")
	f.Add(`a\.b.\042.local.`)
	f.Add("a/../b.local.")
	f.Fuzz(func(t *testing.T, name string) {
		key := msg.Path(name, "skydns")
		part, wildcard := msg.PathWithWildcard(name, "skydns")
		if !strings.HasPrefix(key, part) || !wildcard && part != key {
			t.Fatalf("%q: got %q, part %q, wildcard %t", name, key, part, wildcard)
		}
		if key != "/skydns" && !strings.HasPrefix(key, "/skydns/") {
			t.Fatalf("%q: %q is outside of the prefix", name, key)
		}
		_ = msg.Domain(name)

		// A name as it comes from the wire comes back.
		wire := make([]byte, 256)
		n, err := dns.PackDomainName(name, wire, 0, nil, false)
		if err != nil {
			return
		}
		name, _, err = dns.UnpackDomainName(wire[:n], 0)
		if err != nil || strings.Contains(name, "/") {
			return
		}
		if got := msg.Domain(msg.Path(name, "skydns")); got != name {
			t.Fatalf("%q came back as %q", name, got)
		}
	})
}

func BenchmarkPath(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		msg.Path("a.web.staging.skydns.local.", "skydns")
	}
}
