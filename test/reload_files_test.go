package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Who has changed a file of a plugin below a cache, and reloads, gets what the file says now, and who has changed nothing
// what was kept.
func TestReloadOfChangedFiles(t *testing.T) {
	const zone = "example.org. 3600 IN SOA a b 1 2 3 4 5\nexample.org. 3600 IN NS a.example.net.\nwww.example.org. 3600 IN A 192.0.2.%d\n"
	for name, tc := range map[string]struct{ path, text, stanza string }{
		"hosts":              {"hosts", "192.0.2.%d www.example.org\n", "hosts DIR/hosts {\nttl 3600\n}"},
		"file":               {"db", zone, "file DIR/db example.org"},
		"file below a root":  {"db", zone, "root DIR\nfile db example.org"},
		"included file":      {"sub/inc", "www 3600 IN A 192.0.2.%d\n", "file DIR/including example.org"},
		"auto":               {"zones/db.example.org", zone, "auto example.org {\ndirectory DIR/zones\n}"},
		"nothing but itself": {"", "", "template IN A . {\nanswer \"{{ .Name }} 3600 IN A 192.0.2.1\"\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(n int) {
				t.Helper()
				path := filepath.Join(dir, tc.path)
				if tc.path == "" {
					return
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, fmt.Appendf(nil, tc.text, n), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			including := "@ 3600 IN SOA a b 1 2 3 4 5\n@ 3600 IN NS a.example.net.\n$include sub/inc\n"
			if err := os.WriteFile(filepath.Join(dir, "including"), []byte(including), 0o644); err != nil {
				t.Fatal(err)
			}
			put(1)
			corefile := ".:0 {\nbind 127.0.0.1\ncache\n" + strings.ReplaceAll(tc.stanza, "DIR", dir) + "\n}"
			i, udp, _, err := CoreDNSServerAndPorts(corefile)
			if err != nil {
				t.Fatal(err)
			}
			r := &running{i}
			defer r.end()
			says := func(want string, kept bool) {
				t.Helper()
				m := ask(t, "udp", udp, question("www.example.org.", dns.TypeA))
				if m == nil || len(m.Answer) != 1 || m.Answer[0].(*dns.A).A.String() != want || m.Answer[0].Header().Ttl < 3600 != kept {
					t.Errorf("got %v, want %s, kept: %v", m, want, kept)
				}
			}
			reload := func() {
				t.Helper()
				if r.instance, err = r.instance.Restart(NewInput(corefile)); err != nil {
					t.Fatal(err)
				}
			}
			says("192.0.2.1", false)
			time.Sleep(1100 * time.Millisecond) // TTLs count down in seconds
			reload()
			says("192.0.2.1", true)
			if tc.path == "" {
				return
			}
			put(21)
			reload()
			says("192.0.2.21", false)
		})
	}
}
