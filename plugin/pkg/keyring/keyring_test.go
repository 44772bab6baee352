package keyring

import (
	"testing"

	"github.com/miekg/dns"
)

// TestRing: a ring has the keys that were set last, and none before that.
func TestRing(t *testing.T) {
	var none *Ring
	r := new(Ring)
	for _, empty := range []*Ring{none, r} {
		if _, ok := empty.Key("a."); ok {
			t.Error("an empty ring has a key")
		}
	}
	r.Set(map[string]Key{"a.": {"one", dns.HmacSHA1}})
	if k, ok := r.Key("a."); !ok || k != (Key{"one", dns.HmacSHA1}) {
		t.Error(k, ok)
	}
	r.Set(map[string]Key{"b.": {Secret: "two"}})
	if _, ok := r.Key("a."); ok {
		t.Error("a key that was taken away is there")
	}
	if k, ok := r.Key("b."); !ok || k.Secret != "two" {
		t.Error(k, ok)
	}
}

// TestAlgorithm: names of algorithms in any case, with and without the final dot.
func TestAlgorithm(t *testing.T) {
	for word, want := range map[string]string{"hmac-sha256": dns.HmacSHA256, "HMAC-SHA512.": dns.HmacSHA512, "hmac-md5": "", "": "", "sha256": ""} {
		if got, ok := Algorithm(word); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", word, got, ok)
		}
	}
}
