package sign

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
	"github.com/miekg/dns"
)

func TestSetup(t *testing.T) {
	dir := t.TempDir()
	csk := filepath.Base(keysIn(t, dir, "example.org.", dns.ED25519, 256, 257))
	put(t, filepath.Join(dir, "zsk.key"), "example.org. IN DNSKEY 256 3 15 YjbAqSzk/UrmlAIcGaYxb7YZlrVHkMuseotPbxczKjE=\n")
	put(t, filepath.Join(dir, "a.key"), "example.org. IN A 192.0.2.1\n")
	put(t, filepath.Join(dir, "other.key"), "example.org. IN DNSKEY 257 3 15 YjbAqSzk/UrmlAIcGaYxb7YZlrVHkMuseotPbxczKjE=\n")
	public, _ := os.ReadFile(filepath.Join(dir, csk+".key"))
	put(t, filepath.Join(dir, "Kexample.com.+015+00001.key"), string(public))
	put(t, filepath.Join(dir, "Kexample.com.+015+00001.private"), "Private-key-format: v1.3\nPrivateKey: AAAA\nBBBB\n")
	private, _ := os.ReadFile(filepath.Join(dir, csk+".private"))
	put(t, filepath.Join(dir, "other.private"), string(private))
	key := "\nkey file " + csk + "\n"
	for _, tc := range []struct {
		input string
		want  string // origin, file, directory, keys
		err   string
	}{
		{"sign db.x {" + key + "}", "example.com. DIR/db.x /var/lib/coredns 1", ""},
		{"sign db.x a.example.org b.example.org {" + key + "directory out\n}", "a.example.org. DIR/db.x DIR/out 1; b.example.org. DIR/db.x DIR/out 1", ""},
		{"sign /db.x example.org {" + key + "key file " + csk + ".key " + csk + ".private\ndirectory /out\n}", "example.org. /db.x /out 1", ""}, // one key
		{"sign db.x example.org {\nkey directory .\n}", "example.org. DIR/db.x /var/lib/coredns 1", ""},
		{"sign db.x example.org {" + key + "nsec3\nzonemd\n}\nsign db.y example.net {" + key + "}", "example.org. DIR/db.x /var/lib/coredns 1 nsec3 zonemd; example.net. DIR/db.y /var/lib/coredns 1", ""},
		{"sign", "", "Wrong argument count"},
		{"sign db.x example.org", "", "no keys to sign example.org. with"},
		{"sign db.\uFFFD example.org {" + key + "}", "", "contains invalid characters"},
		{"sign db.x example..org {" + key + "}", "", `invalid zone "example..org"`},
		{"sign db.x example.org {\nkey\n}", "", "Wrong argument count"},
		{"sign db.x example.org {\nkey disk x\n}", "", "unknown property 'disk'"},
		{"sign db.x example.org {\nkey file none\n}", "", "open DIR/none.key: no such file or directory"},
		{"sign db.x example.org {\nkey file zsk\n}", "", `DNSKEY in "DIR/zsk.key" is not a CSK/KSK`},
		{"sign db.x example.org {\nkey file a\n}", "", `RR in "DIR/a.key" is not a DNSKEY: 1`},
		{"sign db.x example.org {\nkey file other\n}", "", "is not that of the public key"},
		{"sign db.x example.com {\nkey directory .\n}", "", `private key "DIR/Kexample.com.+015+00001.private": `},
		{"sign db.x example.net {\nkey directory .\n}", "", "no keys of zone example.net. in"},
		{"sign db.x example.org {" + key + "directory\n}", "", `can only be one argument after "directory"`},
		{"sign db.x example.org {" + key + "directory a b\n}", "", `can only be one argument after "directory"`},
		{"sign db.x example.org {" + key + "algorithm 13\n}", "", "unknown property 'algorithm'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = []string{"example.com"}
		dnsserver.GetConfig(c).Root = dir
		s, err := parse(c)
		want := strings.ReplaceAll(tc.err, "DIR", dir)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "plugin/sign: ")) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, want)
		}
		if err != nil {
			continue
		}
		var got []string
		for _, s := range s.signers {
			one := fmt.Sprintf("%s %s %s %d", s.origin, s.dbfile, s.directory, len(s.keys))
			if s.nsec3 && s.zonemd {
				one += " nsec3 zonemd"
			}
			got = append(got, strings.ReplaceAll(one, dir, "DIR"))
		}
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%q: got %s, want %s", tc.input, strings.Join(got, "; "), tc.want)
		}
	}
}

// TestOneSignerForEachFile: a zone that is named twice, or a block with several keys, for each of which its directives
// are set up, has one signer; two would write the same file, each with signatures of its own.
func TestOneSignerForEachFile(t *testing.T) {
	dir := t.TempDir()
	csk := filepath.Base(keysIn(t, dir, "example.org.", dns.ED25519, 256, 257))
	const inputs = "sign db.x example.org EXAMPLE.org {\nkey file KEY\n}\nsign db.x example.org {\nkey file KEY\nkey file KEY\n}"
	input := strings.ReplaceAll(inputs, "KEY", csk)
	c := caddy.NewTestController("dns", input)
	dnsserver.GetConfig(c).Root = dir
	for i, tc := range []struct {
		input string
		want  int
	}{{input, 1}, {input, 0}, {strings.ReplaceAll(input, "db.x", "db.y"), 1}} {
		c.Dispenser = caddyfile.NewDispenser("Testfile", strings.NewReader(tc.input))
		if s, err := parse(c); err != nil || len(s.signers) != tc.want {
			t.Errorf("%d: %d signers, %v, want %d", i, len(s.signers), err, tc.want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
