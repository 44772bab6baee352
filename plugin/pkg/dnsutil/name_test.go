package dnsutil_test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
)

func TestJoin(t *testing.T) {
	for _, tc := range []struct {
		labels []string
		want   string
	}{
		{nil, "."},
		{[]string{"."}, "."},
		{[]string{""}, "."},
		{[]string{"", "."}, "."},
		{[]string{"org"}, "org."},
		{[]string{"org."}, "org."},
		{[]string{"www", "example", "org"}, "www.example.org."},
		{[]string{"www", "example.org."}, "www.example.org."},
		{[]string{"www", "example.org", "."}, "www.example.org."},
		{[]string{"www", ""}, "www."},
		{[]string{"www.", "", "example.org."}, "www...example.org."}, // dots within are the caller's
		{[]string{"www.", "example.org"}, "www..example.org."},
		{[]string{`a\.`, "example.org."}, `a\..example.org.`},
		{[]string{"www", `a\\.`}, `www.a\\.`},
		{[]string{"www", `a\.`}, `www.a\..`},
	} {
		if got := dnsutil.Join(tc.labels...); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.labels, got, tc.want)
		}
	}
}

func TestTrimZone(t *testing.T) {
	for _, tc := range []struct{ q, z, want string }{
		{"www.example.org.", "example.org.", "www"},
		{"www.example.org.", "example.org", "www"},
		{"www.example.org", "example.org.", "www"},
		{"a.b.example.org.", "example.org.", "a.b"},
		{"A.b.EXAMPLE.org.", "example.ORG.", "A.b"},
		{"org.", ".", "org"},
		{"www.example.org", ".", "www.example.org"},
		{".", ".", ""},
		{"www.example.com.", "example.org.", "www"}, // labels are counted, not compared
		{"wwwexample.org.", "org.", "wwwexample"},
		{"a.b.", "", "a.b"},
		{`a\\.example.org.`, "example.org.", `a\\`},
		{`x.a\.example.org.`, `a\.example.org.`, "x"},
	} {
		got, err := dnsutil.TrimZone(tc.q, tc.z)
		if got != tc.want || err != nil {
			t.Errorf("%q of %q: got %q, %v, want %q", tc.z, tc.q, got, err, tc.want)
		}
	}
}

func TestTrimZoneTooShort(t *testing.T) {
	for _, tc := range []struct{ q, z string }{
		{"example.org.", "example.org."},
		{"org.", "example.org."},
		{"", "."},
		{".", "org."},
		{".example.org.", "example.org."},
		{"wwwexample.org.", "example.org."},
		{"org.", "a.b.example.org."},
		{`a\.example.org.`, "example.org."},
	} {
		if got, err := dnsutil.TrimZone(tc.q, tc.z); err == nil {
			t.Errorf("%q of %q: got %q, want an error", tc.z, tc.q, got)
		}
	}
}

func FuzzTrimZone(f *testing.F) {
	f.Add("www.example.org.", "example.org.")
	f.Add(`a\.b.`, "b.")
	f.Fuzz(func(t *testing.T, q, z string) {
		got, err := dnsutil.TrimZone(q, z)
		if _, valid := dns.IsDomainName(q); err != nil || !valid || z == "" || got == "" {
			return
		}
		if !strings.HasPrefix(q, got) || dns.CountLabel(q) != dns.CountLabel(got)+dns.CountLabel(z) {
			t.Errorf("%q of %q: got %q", z, q, got)
		}
	})
}

func TestDuplicateCNAME(t *testing.T) {
	cname := func(owner, target string) *dns.CNAME {
		return &dns.CNAME{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeCNAME, Class: dns.ClassINET}, Target: target}
	}
	records := []dns.RR{
		&dns.A{Hdr: dns.RR_Header{Name: "c.example.org.", Rrtype: dns.TypeA}},
		cname("a.example.org.", "b.example.org."),
	}
	for _, tc := range []struct {
		target string
		want   bool
	}{
		{"b.example.org.", true},
		{"B.Example.org.", true},
		{"a.example.org.", false},
		{"c.example.org.", false},
	} {
		if got := dnsutil.DuplicateCNAME(cname("x.example.org.", tc.target), records); got != tc.want {
			t.Errorf("%s: got %t", tc.target, got)
		}
	}
}
