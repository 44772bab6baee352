package validator

import (
	"os"
	"strings"
	"testing"

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
		for _, text := range builtin {
			want, err := dns.NewRR(text)
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
