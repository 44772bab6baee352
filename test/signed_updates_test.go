package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// TestSignedUpdates: a zone that is signed with each change is right in the eyes of others: of a program that checks
// zones, and of secondaries, which have it by incremental transfers and deny as this server does.
func TestSignedUpdates(t *testing.T) {
	for i, name := range slices.Concat(zonetest.Servers, zonetest.Servers) {
		kind, denials := "", "nsec"
		if i >= len(zonetest.Servers) {
			kind, denials = " nsec3", "nsec3"
		}
		t.Run(name+kind, func(t *testing.T) {
			verify := zonetest.Program(t, "dnssec-verify", "bind9")
			dir := t.TempDir()
			port, peerPort := loopback.Port(), loopback.Port()
			more := fmt.Sprintf("transfer {\nto 127.0.0.1:%d\ntsig %s\n}", peerPort, updateKey)
			_, key := writeZoneKey(t, dir)
			start(t, dynamicCorefile(t, dir, port, more, "notify_delay 10ms\njournal 1000\nsign key file "+key+kind))
			ours := fmt.Sprintf("127.0.0.1:%d", port)
			peer, _ := zonetest.Serve(t, name, zonetest.Setup{
				Zone: "example.org", File: filepath.Join(t.TempDir(), "db"), Primary: fmt.Sprint(port), Port: peerPort, Algorithm: "hmac-sha256", Secret: updateSecret,
			})
			zonetest.Await(t, peer, "example.org.", 11)
			r := rand.New(rand.NewPCG(5, 6))
			for range 150 {
				sendUpdate(t, "udp", ours, randomUpdate(r))
			}
			m := new(dns.Msg).SetUpdate("example.org.") // so that names are denied
			m.RemoveName([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: "*.example.org."}}})
			sendUpdate(t, "udp", ours, m)
			want, serial := fetched(t, ours, updateKey)
			zonetest.Await(t, peer, "example.org.", serial)
			if got, _ := fetched(t, peer, updateKey); !slices.Equal(got, want) {
				t.Errorf("%s has\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			var text strings.Builder
			for _, rr := range transferred(t, ours, updateKey)[1:] { // the SOA record is at the end, too
				fmt.Fprintln(&text, rr)
			}
			file := filepath.Join(dir, "fetched")
			if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			if strings.Count(strings.Join(want, "\n"), " "+denials+" ") < 4 {
				t.Fatalf("the zone is too small:\n%s", strings.Join(want, "\n"))
			}
			if out, err := exec.Command(verify, "-z", "-o", "example.org", file).CombinedOutput(); err != nil {
				t.Errorf("dnssec-verify: %v\n%s", err, out)
			}
			ldns := zonetest.Program(t, "ldns-verify-zone", "ldnsutils")
			if out, err := exec.Command(ldns, file).CombinedOutput(); err != nil {
				t.Errorf("ldns-verify-zone: %v\n%s", err, out)
			}
			for _, q := range []string{"nope.example.org. A", "ns1.example.org. SRV", "x.y.zz.example.org. A", "example.org. PTR"} {
				f := strings.Fields(q)
				m := question(f[0], dns.StringToType[f[1]])
				m.SetEdns0(1232, true)
				mine, theirs := ask(t, "tcp", ours, m), ask(t, "tcp", peer, m)
				if a, b := denial(mine), denial(theirs); a != b || !strings.Contains(a, "NSEC") {
					t.Errorf("%s: %s\n%s\nand %s by %s\n%s", q, dns.RcodeToString[mine.Rcode], a, dns.RcodeToString[theirs.Rcode], name, b)
				}
			}
		})
	}
}

// denial is the code of a reply, and the records of its authority section but for their signatures, which servers may
// put in any order.
func denial(m *dns.Msg) string {
	lines := []string{dns.RcodeToString[m.Rcode]}
	for _, rr := range m.Ns {
		if rr.Header().Rrtype != dns.TypeRRSIG {
			lines = append(lines, rr.String())
		}
	}
	slices.Sort(lines)
	return strings.ToUpper(strings.Join(lines, "\n"))
}

// TestSignedWildUpdates: cuts, aliases, empty non-terminals and wildcards come and go; after each change the zone is
// right in the eyes of two programs that check zones.
func TestSignedWildUpdates(t *testing.T) {
	bind, ldns := zonetest.Program(t, "dnssec-verify", "bind9"), zonetest.Program(t, "ldns-verify-zone", "ldnsutils")
	for _, kind := range []string{"", " nsec3"} {
		t.Run("nsec"+strings.TrimPrefix(kind, " nsec"), func(t *testing.T) {
			dir, port := t.TempDir(), loopback.Port()
			_, key := writeZoneKey(t, dir)
			corefile := dynamicCorefile(t, dir, port, "transfer {\nto *\n}", "allow "+updateKey+" * DS\nsign key file "+key+kind)
			if err := os.WriteFile(filepath.Join(dir, "db"), []byte(wildSeed), 0o600); err != nil {
				t.Fatal(err)
			}
			start(t, corefile)
			to := &line{addr: fmt.Sprintf("127.0.0.1:%d", port)}
			defer to.close()
			r := rand.New(rand.NewPCG(3, 9))
			file := filepath.Join(dir, "fetched")
			for checked, i := 0, 0; checked < 60; i++ {
				u := wildUpdate(r, 10)
				// A DNAME at the apex hides all else: only now and then.
				if i%20 > 0 && strings.Contains(u.String(), "update example.org.") && strings.Contains(u.String(), " IN DNAME ") || to.exchange(u.packed(time.Now())) != dns.RcodeSuccess {
					continue
				}
				checked++
				var text strings.Builder
				for _, rr := range transferred(t, to.addr, updateKey)[1:] { // the SOA record is at the end, too
					if null, ok := rr.(*dns.NULL); ok { // which the library writes as a comment
						fmt.Fprintf(&text, "%s %d IN NULL \\# %d %x\n", null.Hdr.Name, null.Hdr.Ttl, len(null.Data), null.Data)
						continue
					}
					fmt.Fprintln(&text, rr)
				}
				if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, verify := range []*exec.Cmd{exec.Command(bind, "-z", "-o", "example.org", file), exec.Command(ldns, file)} {
					if out, err := verify.CombinedOutput(); err != nil {
						t.Fatalf("update %d: %v: %v\n%s\n%s\n%s", i, verify, err, out, u, text.String())
					}
				}
			}
		})
	}
}
