package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// downstreamConf is unbound as a validating forwarder: it takes nothing on trust from who it asks.
const downstreamConf = `server:
 interface: 127.0.0.1@5422
 do-daemonize: no
 username: ""
 chroot: ""
 directory: %q
 pidfile: ""
 use-syslog: no
 do-not-query-localhost: no
 module-config: "validator iterator"
 trust-anchor: %q
 trust-anchor-signaling: no
 aggressive-nsec: no
 num-threads: 1
 do-ip6: no
 access-control: 127.0.0.0/8 allow
forward-zone:
 name: "."
 forward-addr: 127.0.0.1@5421
`

// A flood of names below a wildcard costs queries until the zone's few denials are known, and none from then on (RFC
// 8198 §5.3), but in a zone with opt-out. What is made up so has all that a validator further down needs: unbound finds
// it secure.
func TestWildcardFlood(t *testing.T) {
	if !namespaced(t, "unbound", "named", "dnssec-signzone", "dnssec-keygen", "dnssec-dsfromkey") {
		return
	}
	l := buildSigned(t, chosen(t, "expired", "future", "wrong DS", "www unsigned", "no denials", "keys unsigned"))
	l.authorities(t)
	ours := serve(t, 5421, " cache\n"+l.validator("")+l.recurse("aggressive nsec3"))
	awaitSigned(t, l, ours)
	conf := filepath.Join(l.dir, "downstream.conf")
	if err := os.WriteFile(conf, []byte(fmt.Sprintf(downstreamConf, l.dir, l.root)), 0o600); err != nil {
		t.Fatal(err)
	}
	program(t, "unbound", "-c", conf)
	awaitSigned(t, l, "127.0.0.1:5422")
	for denial, proof := range map[string]uint16{"nsec": dns.TypeNSEC, "nsec3": dns.TypeNSEC3, "nsec3 20": dns.TypeNSEC3} {
		zone := l.zoneOf(t, "", denial)
		for _, below := range []string{"wild.", "cn."} {
			for i := range 1500 { // until all of the few records are known
				said(t, ours, fmt.Sprintf("r%d.%s%s", i, below, zone), dns.TypeA, nil)
			}
			n := upstream(t)
			for i := range 50 {
				name := fmt.Sprintf("s%d.%s%s", i, below, zone)
				got, m := said(t, ours, name, dns.TypeA, nil)
				if got != "NOERROR 1 29" {
					t.Fatalf("%s: %s", name, got)
				}
				proven(t, m, name, proof)
			}
			if asked := upstream(t) - n; asked > 0 {
				t.Errorf("%s%s: %v queries", below, zone, asked)
			}
			name := "t." + below + zone
			if got := opinionOf("127.0.0.1:5422", name, dns.TypeA).said; !strings.HasPrefix(got, "NOERROR AD") || upstream(t) > n {
				t.Errorf("%s: unbound finds %s after %v queries", name, got, upstream(t)-n)
			}
			got, m := said(t, ours, "u."+below+zone, dns.TypeA, func(m *dns.Msg) { m.Extra, m.AuthenticatedData = nil, true })
			if got != "NOERROR 1" || len(unsigned(m.Answer)) != len(m.Answer) || len(m.Ns) > 0 {
				t.Errorf("u.%s%s without DO: %s\n%v", below, zone, got, m)
			}
		}
		if got, _ := said(t, ours, "no.wild."+zone, dns.TypeTXT, nil); !strings.HasPrefix(got, "NOERROR 1") {
			t.Errorf("TXT of no.wild.%s: %s", zone, got)
		}
	}
	n, zone := upstream(t), l.zoneOf(t, "", "opt-out")
	for i := range 50 {
		if got, _ := said(t, ours, fmt.Sprintf("r%d.wild.%s", i, zone), dns.TypeA, nil); got != "NOERROR 0" {
			t.Fatalf("opt-out: %s", got)
		}
	}
	if asked := upstream(t) - n; asked < 50 {
		t.Errorf("opt-out: only %v queries", asked)
	}
}

// proven is that an answer by a wildcard has its name, the wildcard's signature, and the signed denial of something closer.
func proven(t *testing.T, m *dns.Msg, name string, proof uint16) {
	t.Helper()
	expanded, denials, signatures := false, 0, 0
	for _, rr := range m.Answer {
		if g, ok := rr.(*dns.RRSIG); ok && g.Hdr.Name == name {
			expanded = expanded || int(g.Labels) == dns.CountLabel(name)-1
		}
	}
	for _, rr := range m.Ns {
		if g, ok := rr.(*dns.RRSIG); ok && g.TypeCovered == proof {
			signatures++
		} else if rr.Header().Rrtype == proof {
			denials++
		} else {
			t.Errorf("%s: %v in the authority section", name, rr)
		}
	}
	if !expanded || denials != 1 || signatures != 1 || m.Answer[0].Header().Name != name || m.Answer[0].Header().Ttl > 300 {
		t.Errorf("%s: %v", name, m)
	}
}
