package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// TestIncrementsThrough: a primary of another kind that changes at random, this server as its secondary, and others as
// secondaries of this server: after each change all have the same zone, also where serials wrap.
func TestIncrementsThrough(t *testing.T) {
	for i, name := range []string{"named", "knotd", "ours"} {
		t.Run(fmt.Sprint(name, i), func(t *testing.T) {
			dir := t.TempDir()
			seed := filepath.Join(dir, "seed")
			var text strings.Builder
			text.WriteString(strings.Replace(updateSeed, "NS ns", "NS ns.example.net.\n;", 2))
			for i := range 400 {
				fmt.Fprintf(&text, "host%d TXT %s\n", i, strings.Repeat("x", 40))
			}
			if err := os.WriteFile(seed, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			var primary string
			if name == "ours" {
				port := loopback.Port()
				start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\ntsig {\nsecret %s %s\nrequire AXFR IXFR\n}\ntransfer {\nto *\n}\ndynupdate {\nfile %s\nallow %s * *\nlog off\n}\n}",
					port, updateKey, updateSecret, seed, updateKey))
				primary = fmt.Sprintf("127.0.0.1:%d", port)
			} else {
				primary, _ = zonetest.Serve(t, name, zonetest.Setup{Zone: "example.org", File: seed, Algorithm: "hmac-sha256", Secret: updateSecret, Update: true})
			}
			zonetest.Await(t, primary, "example.org.", 10)

			port := loopback.Port()
			ports := map[string]int{}
			transfer := fmt.Sprintf("transfer {\ntsig %s\n", updateKey)
			for _, s := range zonetest.Servers {
				ports[s] = loopback.Port()
				transfer += fmt.Sprintf("to 127.0.0.1:%d\n", ports[s])
			}
			start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\ntsig {\nsecret %s %s\n}\nsecondary {\ntransfer from %s\ntsig %s\n}\n%s}\n}",
				port, updateKey, updateSecret, primary, updateKey, transfer))
			ours := fmt.Sprintf("127.0.0.1:%d", port)
			zonetest.Await(t, ours, "example.org.", 10)
			peers := map[string]string{}
			for _, s := range zonetest.Servers {
				peers[s], _ = zonetest.Serve(t, s, zonetest.Setup{
					Zone: "example.org", File: filepath.Join(t.TempDir(), "db"), Primary: fmt.Sprint(port), Port: ports[s], Algorithm: "hmac-sha256", Secret: updateSecret,
				})
				zonetest.Await(t, peers[s], "example.org.", 10)
			}

			r := rand.New(rand.NewPCG(uint64(i), 7))
			for round := range 10 {
				for range 1 + r.IntN(8) {
					m := randomUpdate(r)
					m.Answer = nil
					m.Ns = slices.DeleteFunc(m.Ns, func(rr dns.RR) bool { _, ns := rr.(*dns.NS); return ns })
					rr, _ := dns.NewRR(fmt.Sprintf("host%d.example.org. 300 IN TXT %d", r.IntN(400), round))
					if r.IntN(3) == 0 {
						m.RemoveRRset([]dns.RR{rr})
					}
					m.Insert([]dns.RR{rr})
					sendUpdate(t, "tcp", primary, m)
				}
				_, serial := fetched(t, primary, updateKey)
				if i > 0 && r.IntN(3) == 0 {
					m := new(dns.Msg).SetUpdate("example.org.")
					rr, _ := dns.NewRR(fmt.Sprintf("example.org. 300 IN SOA ns1 hostmaster %d 7200 3600 1209600 60", serial+1<<31-100-r.Uint32N(9)))
					m.Insert([]dns.RR{rr})
					sendUpdate(t, "tcp", primary, m)
				}
				want, serial := fetched(t, primary, updateKey)
				ask(t, "udp", ours, new(dns.Msg).SetNotify("example.org."))
				zonetest.Await(t, ours, "example.org.", serial)
				for s, addr := range peers {
					zonetest.Await(t, addr, "example.org.", serial)
					time.Sleep(20 * time.Millisecond)
					if got, _ := fetched(t, addr, updateKey); !slices.Equal(got, want) {
						t.Fatalf("round %d: %s lacks\n%s\nand has\n%s", round, s, strings.Join(without(want, got), "\n"), strings.Join(without(got, want), "\n"))
					}
				}
				if got, _ := fetched(t, ours, updateKey); !slices.Equal(got, want) {
					t.Fatalf("round %d: lacks\n%s\nand has\n%s", round, strings.Join(without(want, got), "\n"), strings.Join(without(got, want), "\n"))
				}
			}
		})
	}
}
