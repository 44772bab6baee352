package test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// Counters whose labels are known exist from the start, at 0, so that their increase is seen when they are first
// counted up.
func TestCountersExistFromTheStart(t *testing.T) {
	dir := t.TempDir()
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "counted.test.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	for ext, text := range map[string]string{".key": key.String(), ".private": key.PrivateKeyString(private)} {
		if err := os.WriteFile(dir+"/k"+ext, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	metrics, own, other := loopback.Addr(), loopback.Port(), loopback.Port()
	start(t, fmt.Sprintf(`counted.test:%d other.test:%d {
	bind 127.0.0.1
	prometheus %s
	dnssec {
		key file %s/k
	}
	template IN A {
		answer "{{ .Name }} 60 IN A 192.0.2.1"
	}
	template ANY ANY {
		rcode NXDOMAIN
	}
}`, own, other, metrics, dir))
	resp, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := "\n" + string(body)
	for _, port := range []int{own, other} {
		server := fmt.Sprintf("server=\"dns://127.0.0.1:%d\"", port)
		for _, want := range []string{
			"dnssec_cache_hits_total{" + server + "}", "dnssec_cache_misses_total{" + server + "}",
			"template_matches_total{class=\"IN\"," + server + ",type=\"A\",view=\"\",zone=\"counted.test.\"}",
			"template_matches_total{class=\"IN\"," + server + ",type=\"A\",view=\"\",zone=\"other.test.\"}",
			"template_rr_failures_total{class=\"IN\",section=\"answer\"," + server + ",template=\"{{.Name}} 60 IN A 192.0.2.1\",type=\"A\",view=\"\",zone=\"other.test.\"}",
			"template_template_failures_total{class=\"IN\",section=\"answer\"," + server + ",template=\"{{.Name}} 60 IN A 192.0.2.1\",type=\"A\",view=\"\",zone=\"other.test.\"}",
		} {
			if !strings.Contains(text, "\ncoredns_"+want+" 0\n") {
				t.Errorf("there is no %s", want)
			}
		}
		if strings.Contains(text, "class=\"ANY\","+server) {
			t.Error("there is a series of which nothing is known")
		}
	}
}
