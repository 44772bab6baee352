package validator

import (
	"io"
	golog "log"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// The built-in anchors are the digests of the root's keys, as the root has them.
func TestBuiltinIsRootsKeys(t *testing.T) {
	s, err := parseText("validator")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/rootkeys")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		rr, err := dns.NewRR(line)
		if err != nil || rr == nil {
			t.Fatalf("%q: %v", line, err)
		}
		k := rr.(*dns.DNSKEY)
		ds := k.ToDS(dns.SHA256)
		found := false
		for _, b := range builtin {
			want, err := dns.NewRR(b.ds)
			if err != nil {
				t.Fatal(err)
			}
			d := want.(*dns.DS)
			found = found || d.KeyTag == ds.KeyTag && d.Algorithm == ds.Algorithm && d.DigestType == ds.DigestType && strings.EqualFold(d.Digest, ds.Digest)
		}
		if !found {
			t.Errorf("key %d is not among the anchors: %s", k.KeyTag(), ds)
		}
		n++
	}
	if a := s.anchors[rrset.Root]; n != len(builtin) || !a.Builtin || len(a.DS) != n {
		t.Errorf("%d keys, %d anchors", n, len(builtin))
	}
}

// A validation_time in the past has the anchors and algorithms of that past; the clock of the machine has no say.
func TestEra(t *testing.T) {
	for _, tc := range []struct {
		options string
		anchors int  // of the root
		sha1    bool // validated
		rounds  int  // of NSEC3
		hashes  int
	}{
		{"", 2, false, 50, 150},
		{"validation_time 2007-09-16T13:42:26Z", 0, true, 150, 1000},
		{"validation_time 2007-09-16T13:42:26Z\nsha1 insecure", 0, false, 150, 1000},
		{"validation_time 2007-09-16T13:42:26Z\nnsec3_iterations 50\nbudget nsec3_hashes 150", 0, true, 50, 150},
		{"validation_time 2017-02-02T00:00:00Z", 1, true, 150, 1000},
		{"validation_time 2022-08-01T00:00:00Z", 1, true, 50, 150},
		{"validation_time 2025-01-01T00:00:00Z", 2, true, 50, 150},
		{"validation_time 2025-12-01T00:00:00Z", 2, false, 50, 150},
		{"validation_time 2025-12-01T00:00:00Z\nsha1 validate", 2, true, 50, 150},
		{"sha1 validate", 2, true, 50, 150},
		{"nsec3_iterations 0\nbudget nsec3_hashes 7", 2, false, 0, 7},
		{"validation_time 2007-09-16T13:42:26Z\nanchor \". IN DS 1 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\"", 1, true, 150, 1000},
	} {
		s, err := parseText("validator {\n" + tc.options + "\n}")
		if err != nil {
			t.Fatalf("%s: %v", tc.options, err)
		}
		n := 0
		if a := s.anchors[rrset.Root]; a != nil {
			n = len(a.DS)
		}
		if sha1 := s.conf.Algorithms[dns.RSASHA1]; n != tc.anchors || sha1 != tc.sha1 || s.conf.Algorithms[dns.RSASHA1NSEC3SHA1] != sha1 {
			t.Errorf("%q: %d anchors of the root, SHA-1 %t; want %d, %t", tc.options, n, sha1, tc.anchors, tc.sha1)
		}
		if s.conf.Iterations != tc.rounds || s.conf.Budget.Hashes != tc.hashes {
			t.Errorf("%q: %d iterations, %d hashes; want %d, %d", tc.options, s.conf.Iterations, s.conf.Budget.Hashes, tc.rounds, tc.hashes)
		}
	}
}

// Where no anchor of a zone can be used, nothing below is validated: it is told, as no reply tells it but by EDE.
func TestUnusableAnchors(t *testing.T) {
	for options, told := range map[string]bool{
		"":                                      false,
		"disable_digest 4":                      false,
		"disable_digest 2":                      true,
		"disable_algorithm 8":                   true,
		`anchor ". IN DS 1 13 99 AA"`:           true,
		`anchor ". IN DNSKEY 257 3 200 AAAA"`:   true,
		`anchor ". IN DNSKEY 257 3 8 AwEAAQ=="`: false,
		`anchor ". IN DNSKEY 257 3 5 AwEAAQ=="`: false,
		"anchor \". IN DS 1 13 99 AA\"\nanchor \". IN DNSKEY 257 3 8 AwEAAQ==\"": false,
	} {
		s, err := parseText("validator {\n" + options + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		golog.SetOutput(&b)
		s.warnUnusable()
		golog.SetOutput(io.Discard)
		if got := strings.Contains(b.String(), "No anchor of . is of an algorithm"); got != told {
			t.Errorf("%q: %q, want it told: %t", options, b.String(), told)
		}
	}
}

// What is judged otherwise than today is told at the start.
func TestEraIsTold(t *testing.T) {
	const (
		clock   = "signatures are judged by a time that stands still"
		rounds  = "NSEC3 with up to 150 iterations is validated"
		anchors = "The built-in anchors of the root are younger than validation_time"
		sha1    = "validation_time is before RFC 9905: RSA with SHA-1 is validated"
	)
	for options, want := range map[string][]string{
		"":                                     nil,
		"validation_time 2007-09-16T13:42:26Z": {clock, rounds, anchors, sha1},
		"validation_time 2007-09-16T13:42:26Z\nsha1 insecure": {clock, rounds, anchors},
		"validation_time 2017-02-02T00:00:00Z":                {clock, rounds, sha1},
		"validation_time 2025-01-01T00:00:00Z":                {clock, sha1},
		"validation_time 2025-12-01T00:00:00Z":                {clock},
	} {
		s, err := parseText("validator {\n" + options + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		out := logtest.Capture(t)
		s.warnEra()
		for _, line := range []string{clock, rounds, anchors, sha1} {
			if got := strings.Contains(out.String(), line); got != slices.Contains(want, line) {
				t.Errorf("%q: told %t that %s\n%s", options, got, line, out)
			}
		}
		if n := strings.Count(out.String(), "\n"); n != len(want) {
			t.Errorf("%q: %d lines\n%s", options, n, out)
		}
	}
}
