package test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// TestHostedZoneIsTransferred changes a zone at Route 53, whose serials never rise: a secondary has the change all the
// same, as what changed or as the whole zone, and without a secondary the serial stays as it is.
func TestHostedZoneIsTransferred(t *testing.T) {
	awsAccount(t, t.TempDir())
	var zone atomic.Value
	records := func(addr string) string {
		return "$ORIGIN example.org.\n@ 900 IN SOA ns host 1 7200 900 1209600 86400\n@ 900 IN NS ns\nns 60 IN A 192.0.2.53\nwww 60 IN A " + addr + "\n"
	}
	zone.Store(records("192.0.2.1"))
	url := changingRoute53API(t, func() string { return zone.Load().(string) })
	port := loopback.Port()
	_, primary, primaryTCP := start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nroute53 example.org:Z1 {\naws_endpoint %s\nrefresh 1\n}\ntransfer {\nto 127.0.0.1:%d\n}\n}", loopback.Port(), url, port))
	_, plain, _ := start(t, "example.org:0 {\nbind 127.0.0.1\nroute53 example.org:Z1 {\naws_endpoint "+url+"\nrefresh 1\n}\n}")
	_, secondary, _ := start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nsecondary {\ntransfer from %s\n}\n}", port, primary))
	ask := func(addr, name string, typ uint16) *dns.Msg {
		m, err := dns.Exchange(question(name, typ), addr)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	serial := func(addr string) uint32 {
		m := ask(addr, "example.org.", dns.TypeSOA)
		if len(m.Answer) == 0 {
			return 0 // the secondary does not have it yet
		}
		return m.Answer[0].(*dns.SOA).Serial
	}
	first := serial(primary)
	eventually.Holds(t, "the secondary has the zone", func() bool { return serial(secondary) == first })
	for _, addr := range []string{"192.0.2.2", "192.0.2.3"} {
		zone.Store(records(addr))
		for name, at := range map[string]string{"primary": primary, "secondary": secondary} {
			eventually.Holds(t, "the "+name+" has "+addr, func() bool {
				return strings.Contains(brief(ask(at, "www.example.org.", dns.TypeA)), "www.example.org. 60 A "+addr)
			})
		}
	}
	if now, has := serial(primary), serial(secondary); int32(now-first) <= 0 || now != has {
		t.Errorf("serials: first %d, at last %d, that of the secondary %d", first, now, has)
	}
	r := new(dns.Msg).SetIxfr("example.org.", first, ".", ".")
	m, _, err := (&dns.Client{Net: "tcp"}).Exchange(r, primaryTCP)
	if err != nil || len(m.Answer) != 6 || m.Answer[1].(*dns.SOA).Serial != first {
		t.Errorf("what changed since the first version: %v\n%v", err, m)
	}
	if n := serial(plain); n != 1 {
		t.Errorf("a zone that nobody may transfer has serial %d, not that of the provider", n)
	}
}
