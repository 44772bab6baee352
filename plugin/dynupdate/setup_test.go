package dynupdate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/coredns/caddy"
)

// TestReadme: the README has the options of the table.
func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

// TestSetup: what may stand in a directive, and what the errors say.
func TestSetup(t *testing.T) {
	seed := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(seed, []byte(seedText), 0o600); err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		"{\nfile F\nallow key. * *\n}": "",
		"Example.ORG {\nfile F\nallow key @ A type65280 ANY\nallow_below key. sub.example.org TXT\n}":               "",
		"{\nfile F\nself *.dyn.example.org. A\nserial date\njournal 5 100000\nttl 1 2\nnotify_delay 0s\nlog off\n}": "",
		"{\nfile F\nallow key. * *\nmax_update_records 100000\n}":                                                   "",
		"example.org example.net {\nfile F\nallow key. * *\n}":                                                      "exactly one zone is allowed",
		"a..b {\nfile F\nallow key. * *\n}":                                                                         `invalid zone "a..b"`,
		"{\nallow key. * *\n}":                                                                                      "file is required",
		"{\nfile F\nfile F\nallow key. * *\n}":                                                                      "file specified more than once",
		"{\nfile F\ndatabase a\ndatabase b\nallow key. * *\n}":                                                      "database specified more than once",
		"{\nfile F\ndatabase \"\"\nallow key. * *\n}":                                                               "database needs a PATH",
		"{\nfile F\n}":                                                              "at least one allow rule is required",
		"{\nfile F\ndeny key. * *\n}":                                               "at least one allow rule is required",
		"{\nfile F\nallow key. *\n}":                                                "allow requires KEY NAME and at least one RR type",
		"{\nfile F\nallow * * A\n}":                                                 `invalid TSIG key "*"`,
		"{\nfile F\nallow @ * A\n}":                                                 `invalid TSIG key "@"`,
		"{\nfile F\nallow key. www.example.net. A\n}":                               `allow name "www.example.net." is outside zone "example.org."`,
		"{\nfile F\nallow_below key. * A\n}":                                        "use allow",
		"{\nfile F\nallow key. * NOSUCH\n}":                                         `invalid RR type "NOSUCH" in allow rule`,
		"{\nfile F\nallow key. * AXFR\n}":                                           `invalid RR type "AXFR" in allow rule`,
		"{\nfile F\nallow key. * OPT\n}":                                            `invalid RR type "OPT" in allow rule`,
		"{\nfile F\nallow key. * TSIG\n}":                                           `invalid RR type "TSIG" in allow rule`,
		"{\nfile F\nallow key. * NONE\n}":                                           `invalid RR type "NONE" in allow rule`,
		"{\nfile F\nallow key. * RRSIG\n}":                                          `invalid RR type "RRSIG" in allow rule`,
		"{\nfile F\nallow key. * A\nallow_below key. @ OPT\n}":                      `invalid RR type "OPT" in allow rule`,
		"{\nfile F\nallow key. * A\ndeny key. * OPT\n}":                             `invalid RR type "OPT" in deny rule`,
		"{\nfile F\nallow key. * A\ndeny_below key. @ OPT\n}":                       `invalid RR type "OPT" in deny rule`,
		"{\nfile F\nallow key. * A\nself *.dyn.example.org. OPT\n}":                 `invalid RR type "OPT" in self rule`,
		"{\nfile F\nallow key. * A *\n}":                                            "wildcard RR type must be the only type",
		"{\nfile F\nallow key. * * A\n}":                                            "wildcard RR type must be the only type",
		"{\nfile F\nallow key. * *\nmax_records 0\n}":                               "max_records must be between",
		"{\nfile F\nallow key. * *\nmax_bytes 16M\njournal 100 4M\n}":               "",
		"{\nfile F\nallow key. * *\njournal 100 0\n}":                               "journal must be between 1 and",
		"{\nfile F\nallow key. * *\nmax_bytes x\n}":                                 "max_bytes",
		"{\nfile F\nallow key. * *\nmax_update_records -1\n}":                       "max_update_records must be between",
		"{\nfile F\nallow key. * *\nmax_records 5\nmax_records 6\n}":                "max_records",
		"{\nfile F\nallow key. * *\nttl 5 4\n}":                                     "ttl must be between",
		"{\nfile F\nallow key. * *\nnet 192.0.2.0/33\n}":                            `net "192.0.2.0/33"`,
		"{\nfile F\nallow key. * *\nserial random\n}":                               "serial",
		"{\nfile F\nallow key. * *\nnotify_delay 2m\n}":                             "notify_delay must be between",
		"{\nfile F\nallow key. * *\nnosuch\n}":                                      `unknown property "nosuch"`,
		"{\nforward 127.0.0.1 [::1]:5353\n}":                                        "",
		"{\nforward 127.0.0.1 tsig k. hmac-sha512\nallow key. * *\n}":               "",
		"{\nforward 127.0.0.1:nosuch\n}":                                            `forward: invalid port "nosuch" in "127.0.0.1:nosuch"`,
		"{\nforward\n}":                                                             "forward",
		"{\nforward tsig k.\n}":                                                     "an address is missing",
		"{\nforward 127.0.0.1 tsig\n}":                                              "tsig takes KEY [ALGORITHM]",
		"{\nforward 127.0.0.1 tsig k. md5\nallow key. * *\n}":                       `unknown algorithm "md5"`,
		"{\nforward 127.0.0.1 tsig k.\n}":                                           "at least one allow rule is required",
		"{\nforward 127.0.0.1\nallow key. * *\n}":                                   "forward without tsig",
		"{\nforward 127.0.0.1\nfile F\n}":                                           "forward stands in place of file",
		"{\nforward nowhere/x\n}":                                                   "nowhere/x",
		"{\nfile F\nallow key. * *\nsign keys file x\n}":                            `unknown property "keys"`,
		"{\nfile F\nallow key. * *\nsign key folder x\n}":                           "keys come from file or directory",
		"{\nfile F\nallow key. * *\nsign key file nokey\n}":                         "nokey.key",
		"{\nfile F\nallow key. * *\nsign key file nsec3\n}":                         "a key is missing",
		"{\nfile F\nallow key. * CDS\nsign key directory x\n}":                      "no allow rule may name them",
		"{\nfile F\nallow key. * *\nreverse_of example.net\n}":                      `reverse_of: zone "example.org." has no reverse names: must be in-addr.arpa or ip6.arpa, or below`,
		"10.in-addr.arpa {\nfile F\nreverse_of\n}":                                  "reverse_of",
		"10.in-addr.arpa {\nfile F\nreverse_of a..b\n}":                             `reverse_of: invalid zone "a..b"`,
		"10.in-addr.arpa {\nfile F\nreverse_of 11.in-addr.arpa\n}":                  `reverse_of: "11.in-addr.arpa" is a zone of reverse names`,
		"10.in-addr.arpa {\nfile F\nreverse_of a.example\nreverse_of A.example.\n}": `reverse_of: zone "A.example." stands twice`,
		"10.in-addr.arpa {\nforward 127.0.0.1\nreverse_of a.example\n}":             "forward stands in place of file",
		"{\nfile nowhere\nallow key. * *\n}":                                        "nowhere",
		"{\nfile F\nallow key. * *\n}\ndynupdate {\nfile F\nallow key. * *\n}":      "stands twice",
	} {
		c := caddy.NewTestController("dns", "dynupdate "+strings.ReplaceAll(input, "file F", "file "+seed))
		c.ServerBlockKeys = []string{"example.org"}
		err := setup(c)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
	c := caddy.NewTestController("dns", "dynupdate {\nfile "+seed+"\nallow key. * *\n}")
	c.ServerBlockKeys = []string{"example.org", "example.net"}
	if err := setup(c); err == nil || !strings.Contains(err.Error(), "zone is required when the server block does not define exactly one zone") {
		t.Errorf("two zones: %v", err)
	}
}

// TestSeedFoldsCase: records of the file that differ in the case of names only are one, as they are to every update: else
// a database in which one was removed for the other could not be read any more.
func TestSeedFoldsCase(t *testing.T) {
	v, err := parseSeed(strings.NewReader("@ 60 SOA a b 1 2 3 4 5\np 60 PTR Foo.example.net.\np 60 PTR foo.example.net.\n"), "db", "example.org.")
	if err != nil || v.Records() != 2 {
		t.Errorf("%v, %v", v, err)
	}
}

// TestFailedConfiguration: what was read for a configuration that failed is read anew for the next one; two blocks of
// one configuration share it.
func TestFailedConfiguration(t *testing.T) {
	dir := t.TempDir()
	src := source{zone: "example.org.", database: filepath.Join(dir, "zone.db"), seed: filepath.Join(dir, "db")}
	src.settle = func(*zone.Zone, bool) error { return nil }
	serial := func(instance any, key int, seed string) uint32 {
		t.Helper()
		if err := os.WriteFile(src.seed, []byte(seed), 0o600); err != nil {
			t.Fatal(err)
		}
		src.claim = claim{instance, key}
		s, err := openStore(src)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { release(s, nil) })
		return s.durable.Serial()
	}
	const first, second = "@ 60 SOA a b 1 2 3 4 5", "@ 60 SOA a b 2 2 3 4 5"
	if one, two := serial("failed", 0, first), serial("failed", 1, second); one != 1 || two != 1 {
		t.Errorf("one configuration has serials %d and %d", one, two)
	}
	if got := serial("next", 0, second); got != 2 {
		t.Errorf("the next configuration has serial %d", got)
	}
}

// TestLookedAt: a configuration that is only looked at takes no lock, so that another process may have the database, and
// changes nothing; nor does one that failed hold it.
func TestLookedAt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	running := newBed(t, dir, "database "+path)
	running.send(newUpdate(t, "up IN www.example.org. 60 A 192.0.2.1"))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stores.Lock()
	all := stores.all
	stores.all = nil // as in another process
	stores.Unlock()
	defer func() {
		stores.Lock()
		defer stores.Unlock()
		stores.all = all
	}()
	copied := filepath.Join(dir, "copy.db")
	for _, database := range []string{path, copied} {
		torn := whole[:len(whole)-1]
		if err := os.WriteFile(copied, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		src := source{zone: running.d.Zone, database: database, settle: func(*zone.Zone, bool) error { return nil }, keep: journalLimits{count: 16}}
		src.claim, src.looks = claim{"looks", 0}, true
		s, err := openStore(src)
		if err != nil {
			t.Fatal(err)
		}
		abandon(s, src.claim)
		if got, _ := os.ReadFile(copied); !bytes.Equal(got, torn) {
			t.Error("the database is changed")
		}
	}
	src := source{zone: running.d.Zone, database: copied, settle: func(*zone.Zone, bool) error { return nil }, claim: claim{"fails", 0}}
	s, err := openStore(src)
	if err != nil {
		t.Fatal(err)
	}
	abandon(s, src.claim)
	unlock, err := database.Lock(copied, 0)
	if err != nil {
		t.Fatalf("a configuration that is over holds the database: %v", err)
	}
	unlock()
}
