package rrutil

import (
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func TestSubTypeSignature(t *testing.T) {
	a := test.RRSIG("example.org. 300 IN RRSIG A 13 2 300 20450101000000 20200101000000 1 example.org. YQ==")
	mx := test.RRSIG("example.org. 300 IN RRSIG MX 13 2 300 20450101000000 20200101000000 1 example.org. YQ==")
	rrs := []dns.RR{a, test.A("example.org. 300 IN A 192.0.2.1"), mx, a}
	if got := SubTypeSignature(rrs, dns.TypeA); len(got) != 2 || got[0] != a || got[1] != a {
		t.Errorf("A: %v", got)
	}
	if got := SubTypeSignature(rrs, dns.TypeMX); len(got) != 1 || got[0] != mx {
		t.Errorf("MX: %v", got)
	}
	if got := SubTypeSignature(rrs, dns.TypeTXT); got != nil {
		t.Errorf("TXT: %v", got)
	}
}
