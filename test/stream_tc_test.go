package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TC tells a client that an RRset lacks records (RFC 2181 §9), over streams, too: a reply without it is taken for all
// there is. What fits into a message comes along; over a stream that is enough for most.
func TestTCOverStreams(t *testing.T) {
	dir := t.TempDir()
	text := "$ORIGIN example.org.\n$TTL 60\n@ IN SOA ns h 1 2 3 4 5\n@ IN NS ns\n$GENERATE 1-3000 many IN TXT \"0123456789012345678901234567890123456789 $\"\n" +
		"$GENERATE 1-40 sub IN NS name-server-number-$.sub\n$GENERATE 1-40 name-server-number-$.sub IN A 192.0.2.$\n" +
		"$GENERATE 1-1100 mx IN MX 1 $.host\n$GENERATE 1-1100 $.host IN A 192.0.2.1\n$GENERATE 1-1100 $.host IN AAAA 2001:db8::$\n" +
		"$GENERATE 1-1100 $.host IN A 192.0.2.2\n$GENERATE 1-1100 $.host IN A 192.0.2.3\n" +
		"one IN TXT" + strings.Repeat(" \""+strings.Repeat("x", 255)+"\"", 255) + " \"" + strings.Repeat("x", 190) + "\"\n" +
		"big IN TXT" + strings.Repeat(" \""+strings.Repeat("x", 255)+"\"", 255) + " \"" + strings.Repeat("x", 254) + "\"\n"
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, above := range []string{"", "loadbalance\nminimal\n", "log\nrewrite ttl exact www.example.org 5\n"} {
		bothLanes(t, func(t *testing.T) {
			_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\n"+above+"file "+dir+"/db example.org\n}")
			for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
				m := ask(t, network, addr, question("many.example.org.", dns.TypeTXT))
				if m == nil || !m.Truncated || network == "tcp" && len(m.Answer) < 1000 || len(m.Answer) == 3000 {
					t.Errorf("%q over %s: %d records, TC %t", above, network, len(m.Answer), m.Truncated)
				}
				m = ask(t, network, addr, question("x.sub.example.org.", dns.TypeA))
				if m == nil || m.Truncated != (network == "udp") {
					t.Errorf("%q over %s: %v", above, network, m)
				}
				// One record that fills a message, and one that no message can hold.
				m = ask(t, network, addr, question("one.example.org.", dns.TypeTXT))
				if got := brief1(m); network == "tcp" && got != "NOERROR TC false, 1 records" || network == "udp" && got != "NOERROR TC true, 0 records" {
					t.Errorf("%q over %s: %s", above, network, got)
				}
				m = ask(t, network, addr, question("big.example.org.", dns.TypeTXT))
				if got := brief1(m); got != "NOERROR TC true, 0 records" {
					t.Errorf("%q over %s, too long a record: %s", above, network, got)
				}
				// Additional records are none that a client needs.
				m = ask(t, network, addr, question("mx.example.org.", dns.TypeMX))
				if network == "tcp" && (m == nil || m.Truncated || len(m.Answer) != 1100 || len(m.Extra) == 4400) {
					t.Errorf("%q over %s: MX: %s", above, network, brief1(m))
				}
			}
		})
	}
}

// brief1 is how a reply came out.
func brief1(m *dns.Msg) string {
	if m == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s TC %t, %d records", dns.RcodeToString[m.Rcode], m.Truncated, len(m.Answer))
}
