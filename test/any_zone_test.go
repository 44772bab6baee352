package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"
)

// A zone answers ANY with some of what it has over UDP, and with all of it over a stream, in both lanes.
func TestAnyOfZone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db.example.org"), []byte(laneZone), 0o600); err != nil {
		t.Fatal(err)
	}
	bothLanes(t, func(t *testing.T) {
		_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\nfile "+dir+"/db.example.org example.org\n}")
		for _, tc := range []struct {
			name   string
			udp, s string // sections as owners has them
		}{
			{"www.example.org.", "www.example.org./A www.example.org./A www.example.org./A", "www.example.org./A www.example.org./A www.example.org./A www.example.org./AAAA"},
			{"web.example.org.", "web.example.org./CNAME", "web.example.org./CNAME"},
			{"child.example.org.", "child.example.org./CNAME", "child.example.org./CNAME"},
			{"x.wild.example.org.", "x.wild.example.org./A", "x.wild.example.org./A x.wild.example.org./MX"},
			{"example.org.", "example.org./NS example.org./NS", "example.org./MX example.org./NS example.org./NS example.org./SOA example.org./TXT"},
		} {
			for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
				want := tc.udp
				if network == "tcp" {
					want = tc.s
				}
				m := ask(t, network, addr, question(tc.name, dns.TypeANY))
				if m == nil || m.Rcode != dns.RcodeSuccess || owners(m.Answer) != want || m.Truncated {
					t.Errorf("%s over %s: %v, want %s", tc.name, network, m, want)
				}
			}
		}
	})
}
