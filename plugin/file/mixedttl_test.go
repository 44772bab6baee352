package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/miekg/dns"
)

// All records of an RRset have the least of the TTLs that the file gives them; the log says once for each where another
// one stands, and of many how many there are.
func TestSeveralTTLs(t *testing.T) {
	dir := t.TempDir()
	path, more := filepath.Join(dir, "db"), filepath.Join(dir, "more")
	text := `$ORIGIN example.org.
@ 300 IN SOA ns hostmaster 1 7200 3600 1209600 300
@ 300 IN NS ns
www 300 IN A 192.0.2.1
www 60 IN A ( ; over two lines
	192.0.2.2 )
www 600 IN A 192.0.2.3
www 900 IN AAAA 2001:db8::1
www 900 IN AAAA 2001:db8::2
$INCLUDE more
`
	for name, text := range map[string]string{path: text, more: "ns 20 IN A 192.0.2.4\nns 10 IN A 192.0.2.5\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := logtest.Capture(t)
	z := NewZone("example.org.", path)
	if err := z.Load(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("File %q: %s:5: the records of www.example.org., type A, have several TTLs: the least, 60, counts for all\n", path, path),
		fmt.Sprintf("File %q: %s:2: the records of ns.example.org., type A, have several TTLs: the least, 10, counts for all\n", path, more),
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out.String(), "several TTLs"); n != 2 {
		t.Errorf("%d warnings:\n%s", n, out)
	}
	want := map[string]uint32{"www.example.org. A": 60, "www.example.org. AAAA": 900, "ns.example.org. A": 10}
	for _, e := range z.All() {
		for _, rr := range e.All() {
			if ttl, ok := want[rr.Header().Name+" "+dns.TypeToString[rr.Header().Rrtype]]; ok && ttl != rr.Header().Ttl {
				t.Errorf("%v, want TTL %d", rr, ttl)
			}
		}
	}
}

func TestManySetsWithSeveralTTLs(t *testing.T) {
	var text strings.Builder
	text.WriteString("@ 300 IN SOA ns.example.org. hostmaster.example.org. 1 7200 3600 1209600 300\n")
	for i := range 500 {
		fmt.Fprintf(&text, "n%[1]d 300 IN A 192.0.2.1\nn%[1]d 301 IN A 192.0.2.2\n", i)
	}
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := logtest.Capture(t)
	if err := NewZone("example.org.", path).Load(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "have several TTLs"); n != 11 || !strings.Contains(out.String(), "490 more RRsets of zone example.org. have several TTLs") {
		t.Errorf("%d lines:\n%s", n, out)
	}
}

// Records that are left out are told with the line on which they begin, also those of included files.
func TestPlacesOfRecordsLeftOut(t *testing.T) {
	dir := t.TempDir()
	path, more := filepath.Join(dir, "db"), filepath.Join(dir, "more")
	for name, text := range map[string]string{
		path: "@ 300 SOA ns hostmaster 1 7200 3600 1209600 300\n@ 300 NS ns\n$INCLUDE more\n\nexample.net. 300 A 192.0.2.1\nx CH TXT y\n",
		more: "; nothing\nwww.example.net. 300 A (\n 192.0.2.1 )\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := logtest.Capture(t)
	if err := NewZone("example.org.", path).Load(); err != nil {
		t.Fatal(err)
	}
	for place, is := range map[string]string{
		path + ":5": "example.net. is not in zone example.org.", more + ":2": "www.example.net. is not in zone example.org.",
		path + ":6": "x.example.org. has class CH, not IN",
	} {
		if want := fmt.Sprintf("File %q: %s: record %s: left out\n", path, place, is); !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
