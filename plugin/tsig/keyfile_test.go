package tsig

import (
	"maps"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/keyring"
)

func TestParseKeyFile(t *testing.T) {
	for text, want := range map[string]map[string]keyring.Key{
		"": {},
		"key \"a.example.org.\" {\n algorithm hmac-sha256;\n secret \"AAAA\";\n};\n": {"a.example.org.": {Secret: "AAAA", Algorithm: "hmac-sha256."}},
		"key A.example.org { secret AAAA; }; // one\n# two\n/* three\n */key b { secret \"BBBB\"; algorithm x; };": {
			"a.example.org.": {Secret: "AAAA"}, "b.": {Secret: "BBBB"},
		},
	} {
		if got, err := parseKeyFile(strings.NewReader(text)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"zone x": `line 1: unexpected token "zone"`,
		"key a {\nsecret x;\n};\nkey a { secret y; };": `line 4: key "a." redefined`,
		"key a {\nalgorithm x;\n};":                    `line 3: expected secret for key "a."`,
		"key a {\nsecret x\n};":                        `line 3: unexpected token "}", want ";"`,
		"key a { file x; };":                           `line 1: unexpected token "file"`,
		"key a {":                                      "line 1: unexpected EOF",
		"key \"a":                                      "line 1: string without end",
		"/* x":                                         "line 1: comment without end",
		"key a secret":                                 `line 1: unexpected token "secret", want "{"`,
	} {
		if _, err := parseKeyFile(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzKeyFile(f *testing.F) {
	f.Add("key \"a.example.org.\" {\n algorithm hmac-sha256;\n secret \"AAAA\";\n};\n")
	f.Add("key a { /* x */ secret b; };")
	f.Fuzz(func(t *testing.T, text string) {
		secrets, err := parseKeyFile(strings.NewReader(text))
		if err != nil {
			return
		}
		if n := strings.Count(text, "key"); len(secrets) > n {
			t.Errorf("%d keys of %d", len(secrets), n)
		}
		for name, secret := range secrets {
			if !strings.HasSuffix(name, ".") || secret.Secret == "" {
				t.Errorf("%q: %q", name, secret)
			}
		}
	})
}
