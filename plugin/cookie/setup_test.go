package cookie

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSetup(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secrets"), "# of today\n\n"+secretA+" # signs\n  "+secretB+"\r\n")
	a, _ := cookie.ParseSecret(secretA)
	b, _ := cookie.ParseSecret(secretB)
	for options, want := range map[string]struct {
		keys         cookie.Keys
		off, require bool
		plugins      int
	}{
		"":                    {nil, false, false, 1},
		"require":             {nil, false, true, 1},
		"off":                 {nil, true, false, 0},
		"secret " + secretA:   {cookie.Keys{a}, false, false, 1},
		"secret_file secrets": {cookie.Keys{a, b}, false, false, 1},
		"secret_file " + filepath.Join(dir, "secrets") + "\nrequire": {cookie.Keys{a, b}, false, true, 1},
		"secret " + secretB + " " + strings.ToUpper(secretA):         {cookie.Keys{b, a}, false, false, 1},
	} {
		c := caddy.NewTestController("dns", "cookie {\n"+options+"\n}")
		cfg := dnsserver.GetConfig(c)
		cfg.Root = dir
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", options, err)
			continue
		}
		if got := cfg.Cookies; got.Off != want.off || got.Require != want.require || (got.Ring == nil) != (want.keys == nil) ||
			got.Ring != nil && !got.Ring.Same(cookie.NewRing(want.keys)) || len(cfg.Plugin) != want.plugins {
			t.Errorf("%q: got %+v, %d plugins", options, got, len(cfg.Plugin))
		}
	}
}

func TestSetupErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty"), "# nothing\n")
	write(t, filepath.Join(dir, "bad"), secretA+"\n\nsecret\n")
	write(t, filepath.Join(dir, "good"), secretA)
	const place = "plugin/cookie: Testfile:2 - Error during parsing: "
	for input, want := range map[string]string{
		"cookie on":                "Wrong argument count",
		"cookie\ncookie":           "this plugin can only be used once per Server Block",
		"cookie {\nrequired\n}":    place + "unknown property 'required': did you mean 'require'?",
		"cookie {\nsecret\n}":      "Wrong argument count",
		"cookie {\nsecret 1234\n}": place + "secret 1: a secret has 32 hexadecimal digits, not 4 characters",
		"cookie {\nsecret " + secretA + " " + strings.Repeat("x", 32) + "\n}": place + "secret 2: a secret has 32 hexadecimal digits, and nothing else",
		"cookie {\nsecret " + secretA + "\nsecret " + secretB + "\n}":         "secret can only be specified once",
		"cookie {\nsecret_file a b\n}":                                        "Wrong argument count",
		"cookie {\nsecret_file none\n}":                                       place + "reading secrets: open ",
		"cookie {\nsecret_file empty\n}":                                      place + "reading secrets of " + filepath.Join(dir, "empty") + ": there is no secret",
		"cookie {\nsecret_file bad\n}":                                        place + "reading secrets of " + filepath.Join(dir, "bad") + ": line 3: a secret has 32 hexadecimal digits, not 6 characters",
		"cookie {\nsecret_file good\nsecret " + secretA + "\n}":               "plugin/cookie: secret and secret_file exclude each other",
		"cookie {\noff\nrequire\n}":                                           "plugin/cookie: off excludes all other options",
		"cookie {\noff\nsecret_file good\n}":                                  "plugin/cookie: off excludes all other options",
		"cookie {\nrequire please\n}":                                         "Wrong argument count",
	} {
		c := caddy.NewTestController("dns", input)
		dnsserver.GetConfig(c).Root = dir
		if err := setup(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", input, err, want)
		}
	}
}

// A file is read again when it was changed; what has faults changes nothing.
func TestFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	write(t, path, secretA)
	f, err := openSecrets(path)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := cookie.ParseSecret(secretA)
	b, _ := cookie.ParseSecret(secretB)
	for _, step := range []struct {
		text string // "" removes the file
		want cookie.Keys
		err  string
	}{
		{secretA, cookie.Keys{a}, ""},
		{secretA + "\n" + secretB, cookie.Keys{a, b}, ""},
		{secretB + "\n" + secretA, cookie.Keys{b, a}, ""},
		{"oh", cookie.Keys{b, a}, "line 1: "},
		{"# empty", cookie.Keys{b, a}, "there is no secret"},
		{"", cookie.Keys{b, a}, "no such file"},
		{secretB, cookie.Keys{b}, ""},
	} {
		if step.text == "" {
			os.Remove(path)
		} else {
			write(t, path, step.text)
		}
		f.look()
		if !f.ring.Same(cookie.NewRing(step.want)) || !strings.Contains(f.err, step.err) || (f.err == "") != (step.err == "") {
			t.Errorf("%q: error %q", step.text, f.err)
		}
	}
}

func TestWatcher(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	write(t, path, secretA)
	f, err := openSecrets(path)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{file: f, every: time.Millisecond}
	if err := w.stop(); err != nil { // before it began
		t.Error(err)
	}
	w.start()
	defer w.stop()
	write(t, path+".new", secretB)
	os.Rename(path+".new", path)
	b, _ := cookie.ParseSecret(secretB)
	for end := time.Now().Add(5 * time.Second); !f.ring.Same(cookie.NewRing(cookie.Keys{b})); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not read again")
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// A file that can be read holds at least one secret, and those that are written down again are the same.
func FuzzParseSecrets(f *testing.F) {
	f.Add([]byte(secretA))
	f.Add([]byte("# x\n" + secretA + "\r\n\t" + secretB + "#y"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseSecrets(text)
		if err != nil {
			if keys != nil || strings.Contains(err.Error(), secretA) {
				t.Fatal(err)
			}
			return
		}
		again := ""
		for _, k := range keys {
			again += hex.EncodeToString(k[:]) + "\n"
		}
		if same, err := parseSecrets([]byte(again)); err != nil || len(keys) == 0 || !cookie.NewRing(same).Same(cookie.NewRing(keys)) {
			t.Fatalf("%q: %v, %v", text, same, err)
		}
	})
}
