package fetch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// Other servers as primaries: all of a zone, what changed, signed and not.

const (
	hostsOfPeers = 500
	peerKey      = "c2VjcmV0LW9mLXRoZS1wZWVycw=="
)

// zoneOf is a zone with that serial; one host's address is the serial.
func zoneOf(serial int) string {
	s := fmt.Sprintf("$ORIGIN example.org.\n$TTL 300\n@ SOA ns hostmaster %d 7200 3600 1209600 300\n@ NS ns\nns A 192.0.2.%d\n@ MX 10 host1\n_s._tcp SRV 1 2 3 host2\nalias CNAME host3\n", serial, serial)
	for i := range hostsOfPeers {
		s += fmt.Sprintf("host%d A 192.0.2.%d\nhost%d TXT \"some text of host %d\"\n", i, i%250, i, i)
	}
	return s
}

func TestFromPeers(t *testing.T) {
	for i, name := range slices.Concat(zonetest.Servers, zonetest.Servers) {
		t.Run(name, func(t *testing.T) {
			if i >= len(zonetest.Servers) {
				share(t)
			}
			file := filepath.Join(t.TempDir(), "db")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(zoneOf(1))
			addr, reload := zonetest.Serve(t, name, zonetest.Setup{Zone: "example.org", File: file, Algorithm: "hmac-sha512", Secret: peerKey})
			zonetest.Await(t, addr, "example.org.", 1)

			key := &Key{keyName, dns.HmacSHA512, peerKey}
			c := &Client{Primary: addr, Key: key}
			first, err := c.Zone(t.Context(), origin, nil, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			if first.Serial() != 1 || first.Records() != 6+2*hostsOfPeers {
				t.Errorf("serial %d, %d records", first.Serial(), first.Records())
			}
			if serial, err := c.Serial(t.Context(), origin); err != nil || serial != 1 {
				t.Errorf("serial %d, %v", serial, err)
			}
			if _, err := c.Zone(t.Context(), origin, first, t.Logf); err != ErrCurrent {
				t.Errorf("nothing new: %v", err)
			}
			if _, err := (&Client{Primary: addr, Key: &Key{keyName, dns.HmacSHA512, "b3RoZXI="}}).Zone(t.Context(), origin, nil, t.Logf); err == nil {
				t.Error("a transfer with a wrong secret")
			}

			write(zoneOf(2))
			reload()
			zonetest.Await(t, addr, "example.org.", 2)
			few := &Client{Primary: addr, Key: key, Limits: Limits{Records: 20}} // too few for all of it
			second, err := few.Zone(t.Context(), origin, first, t.Logf)
			for range 100 { // of a peer's processes another one than answered Await may still have the old zone
				if err != ErrCurrent {
					break
				}
				time.Sleep(50 * time.Millisecond)
				second, err = few.Zone(t.Context(), origin, first, t.Logf)
			}
			if err != nil {
				t.Fatalf("what changed: %v", err)
			}
			all, err := c.Zone(t.Context(), origin, nil, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			if second.Serial() != 2 || second.Records() != all.Records() || fmt.Sprint(lines(t, second)) != fmt.Sprint(lines(t, all)) {
				t.Errorf("serial %d, %d records, all are %d", second.Serial(), second.Records(), all.Records())
			}
		})
	}
}
