package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"
)

// TC sends a client to TCP; one that is there gets what fits into a message, without it.
func TestTCOverStreams(t *testing.T) {
	dir := t.TempDir()
	text := "$ORIGIN example.org.\n$TTL 60\n@ IN SOA ns h 1 2 3 4 5\n@ IN NS ns\n$GENERATE 1-3000 many IN TXT \"0123456789012345678901234567890123456789 $\"\n" +
		"$GENERATE 1-40 sub IN NS name-server-number-$.sub\n$GENERATE 1-40 name-server-number-$.sub IN A 192.0.2.$\n"
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, above := range []string{"", "loadbalance\nminimal\n", "log\nrewrite ttl exact www.example.org 5\n"} {
		bothLanes(t, func(t *testing.T) {
			_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\n"+above+"file "+dir+"/db example.org\n}")
			for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
				m := ask(t, network, addr, question("many.example.org.", dns.TypeTXT))
				if m == nil || m.Truncated != (network == "udp") || network == "tcp" && len(m.Answer) < 1000 || len(m.Answer) == 3000 {
					t.Errorf("%q over %s: %d records, TC %t", above, network, len(m.Answer), m.Truncated)
				}
				m = ask(t, network, addr, question("x.sub.example.org.", dns.TypeA))
				if m == nil || m.Truncated != (network == "udp") {
					t.Errorf("%q over %s: %v", above, network, m)
				}
			}
		})
	}
}
