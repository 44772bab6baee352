package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestBurstsToLargeTables: of a zone, a hosts file and a cache that are so large that queries are read ahead, each query of
// a burst gets its own answer.
func TestBurstsToLargeTables(t *testing.T) {
	const names, cached = 40_000, 110_000
	dir := t.TempDir()
	var zone, hosts strings.Builder
	zone.WriteString("@ 300 IN SOA ns host 1 7200 3600 1209600 300\n@ 300 IN NS ns\nns 300 IN A 192.0.2.53\n")
	for i := range names {
		fmt.Fprintf(&zone, "n%d 300 IN A 10.1.%d.%d\n", i, i>>8, i&255)
		fmt.Fprintf(&hosts, "10.2.%d.%d n%d.hosts.example\n", i>>8, i&255, i)
	}
	for name, text := range map[string]string{"db": zone.String(), "hosts": hosts.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i, udp, _, err := CoreDNSServerAndPorts(strings.ReplaceAll(`zone.example:0 {
		file DIR/db
	}
	hosts.example:0 {
		hosts DIR/hosts
	}
	cached.example:0 {
		cache {
			success 200000
		}
		template IN A {
			match ^n(\d+)\.
			answer "{{ .Name }} 300 IN A 10.3.0.1"
			answer "{{ .Name }} 300 IN TXT {{ index .Match 1 }}"
		}
	}`, "DIR", dir))
	if err != nil {
		t.Fatal(err)
	}
	defer (&running{instance: i}).end()
	conn, err := net.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := rand.New(rand.NewPCG(1, 2))
	burst(t, conn, cached, func(id int) string { return fmt.Sprintf("n%d.cached.example.", id) }) // fills the cache
	for _, zone := range []string{"zone", "hosts", "cached", "zone", "hosts", "cached"} {
		n := names
		if zone == "cached" {
			n = cached
		}
		burst(t, conn, names/4, func(int) string { return fmt.Sprintf("n%d.%s.example.", r.IntN(n), zone) })
	}
}

// burst asks n questions, some at a time, and looks at the answers.
func burst(t *testing.T, conn net.Conn, n int, name func(id int) string) {
	t.Helper()
	const atOnce = 50
	lost := 0
	for from := 0; from < n; from += atOnce {
		asked := map[uint16]string{}
		for id := from; id < from+atOnce; id++ {
			asked[uint16(id)] = name(id)
			b, err := new(dns.Msg).SetQuestion(asked[uint16(id)], dns.TypeA).Pack()
			if err != nil {
				t.Fatal(err)
			}
			b[0], b[1] = byte(id>>8), byte(id)
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		buf := make([]byte, 4096)
		for len(asked) > 0 {
			k, err := conn.Read(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				lost += len(asked) // by the kernel, on a busy machine
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			m := new(dns.Msg)
			if err := m.Unpack(buf[:k]); err != nil {
				t.Fatal(err)
			}
			want := asked[m.Id]
			delete(asked, m.Id)
			if len(m.Question) != 1 || m.Question[0].Name != want || len(m.Answer) == 0 {
				t.Fatalf("%s: got\n%v", want, m)
			}
			m.Answer[0].Header().Ttl = 300
			if m.Answer[0].String() != answerTo(want) {
				t.Fatalf("%s: got\n%v", want, m)
			}
		}
	}
	if lost > n/100 {
		t.Errorf("%d of %d queries had no answer", lost, n)
	}
}

// answerTo is the address record of a name.
func answerTo(name string) string {
	var i int
	var zone string
	fmt.Sscanf(strings.ReplaceAll(name, ".", " "), "n%d %s", &i, &zone)
	switch zone {
	case "zone":
		return fmt.Sprintf("%s\t300\tIN\tA\t10.1.%d.%d", name, i>>8, i&255)
	case "hosts":
		return fmt.Sprintf("%s\t300\tIN\tA\t10.2.%d.%d", name, i>>8, i&255)
	}
	return name + "\t300\tIN\tA\t10.3.0.1"
}
