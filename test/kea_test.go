package test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// lease is what a DHCP server of Kea tells its DNS updater: a lease begins (0) or ends (1).
type lease struct {
	Change   int    `json:"change-type"`
	Forward  bool   `json:"forward-change"`
	Reverse  bool   `json:"reverse-change"`
	Name     string `json:"fqdn"`
	Address  string `json:"ip-address"`
	ID       string `json:"dhcid"`
	Expires  string `json:"lease-expires-on"`
	Seconds  int    `json:"lease-length"`
	Resolves bool   `json:"use-conflict-resolution"`
}

// TestKea: the updater of Kea gives leases their names and addresses, takes them back, and leaves names alone that are
// another client's (RFC 4703).
func TestKea(t *testing.T) { testKea(t, "") }

// TestKeaWithReverse: where the reverse zone is kept by the server, an updater that cares for both zones does no harm.
func TestKeaWithReverse(t *testing.T) { testKea(t, "reverse_of example.org") }

func testKea(t *testing.T, reverse string) {
	path := zonetest.Program(t, "kea-dhcp-ddns", "kea-dhcp-ddns-server")
	dir := t.TempDir()
	port := loopback.Port()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for zone, ns := range map[string]string{"example.org.": "ns1.example.org.", "2.0.192.in-addr.arpa.": "ns1.example.org."} {
		text := fmt.Sprintf("$TTL 300\n%s SOA %s h.example.org. 10 7200 3600 1209600 60\n%s NS %s\n", zone, ns, zone, ns)
		if err := os.WriteFile(filepath.Join(dir, zone), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start(t, fmt.Sprintf(`example.org:%d 2.0.192.in-addr.arpa:%d {
		bind 127.0.0.1
		tsig {
			secret %s %s
		}
		dynupdate example.org {
			file %s/example.org.
			allow %s * A AAAA DHCID ANY
		}
		dynupdate 2.0.192.in-addr.arpa {
			file %s/2.0.192.in-addr.arpa.
			allow %s * PTR DHCID ANY
			%s
		}
	}`, port, port, updateKey, updateSecret, dir, updateKey, dir, updateKey, reverse))

	listens := loopback.Port()
	zone := func(name string) string {
		return fmt.Sprintf(`{"ddns-domains": [{"name": %q, "key-name": %q, "dns-servers": [{"ip-address": "127.0.0.1", "port": %d}]}]}`, name, updateKey, port)
	}
	config := fmt.Sprintf(`{"DhcpDdns": {"ip-address": "127.0.0.1", "port": %d,
		"tsig-keys": [{"name": %q, "algorithm": "HMAC-SHA256", "secret": %q}],
		"forward-ddns": %s, "reverse-ddns": %s,
		"loggers": [{"name": "kea-dhcp-ddns", "severity": "INFO", "output_options": [{"output": "stdout"}]}]}}`,
		listens, updateKey, updateSecret, zone("example.org."), zone("2.0.192.in-addr.arpa."))
	file := filepath.Join(dir, "kea.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KEA_PIDFILE_DIR", dir)
	t.Setenv("KEA_LOCKFILE_DIR", "none")
	zonetest.Run(t, dir, path, "-c", file)

	to, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", listens))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	// addresses is what the name and the address have, and whose they are.
	state := func() string {
		var all []string
		for _, q := range []struct {
			name string
			typ  uint16
		}{{"pc.example.org.", dns.TypeA}, {"7.2.0.192.in-addr.arpa.", dns.TypePTR}, {"pc.example.org.", dns.TypeDHCID}} {
			reply := ask(t, "udp", addr, question(q.name, q.typ))
			if reply == nil {
				return "no answer"
			}
			for _, rr := range reply.Answer {
				all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
			}
		}
		return strings.Join(all, " ")
	}
	mine, other := strings.Repeat("01", 35), strings.Repeat("02", 35)
	left := "pc.example.org. " // of the address that is another one: who cares for it has said nothing yet
	if reverse != "" {
		left = ""
	}
	const myID = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	for _, step := range []struct {
		what string
		lease
		want string
	}{
		{"a lease", lease{0, true, true, "pc.example.org.", "192.0.2.7", mine, "20300101000000", 600, true}, "192.0.2.7 pc.example.org. " + myID},
		{"another client of that name", lease{0, true, false, "pc.example.org.", "192.0.2.8", other, "20300101000000", 600, true}, "192.0.2.7 pc.example.org. " + myID},
		{"the same client again", lease{0, true, false, "pc.example.org.", "192.0.2.9", mine, "20300101000000", 600, true}, "192.0.2.9 " + left + myID},
		{"the lease ends", lease{1, true, false, "pc.example.org.", "192.0.2.9", mine, "20300101000000", 600, true}, strings.TrimSpace(left)},
		{"so does the address", lease{1, false, true, "pc.example.org.", "192.0.2.7", mine, "20300101000000", 600, true}, ""},
	} {
		b, err := json.Marshal(step.lease)
		if err != nil {
			t.Fatal(err)
		}
		packet := append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
		to.Write(packet)
		got := ""
		for i := range 100 {
			if got = state(); got == step.want && (i > 10 || step.what != "another client of that name") {
				break
			}
			if step.what == "a lease" && i%10 == 9 {
				to.Write(packet) // it may not have listened yet; the same lease again changes nothing
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got != step.want {
			t.Fatalf("%s: %q, want %q", step.what, got, step.want)
		}
	}
}
