package dnsserver

import (
	"strings"
	"testing"

	"github.com/coredns/caddy/caddyfile"
)

func TestStanzaText(t *testing.T) {
	texts := map[string]string{}
	for name, corefile := range map[string]string{
		"plain":      "a {\ncache 30 {\n success 1\n}\nlog\n}",
		"other line": "# something\n\na {\n  log\n  cache   30 { # thirty\n\n success 1 \n}\n}",
		"imported":   "(x) {\ncache 30 {\n success 1\n}\n}\na {\nimport x\n}",
		"split":      "a {\ncache 30 {\n success\n1\n}\n}",
		"joined":     "a {\ncache 30 {\n \"success 1\"\n}\n}",
		"twice":      "a {\ncache 30 {\n success 1\n}\ncache 30 {\n success 1\n}\n}",
		"none":       "a {\nlog\n}",
	} {
		blocks, err := caddyfile.Parse("Corefile", strings.NewReader(corefile), nil)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = textOf(blocks[len(blocks)-1].Tokens["cache"])
	}
	for name, text := range texts {
		if same := text == texts["plain"]; same != (name == "plain" || name == "other line" || name == "imported") {
			t.Errorf("%s: %q, plain is %q", name, text, texts["plain"])
		}
	}
	if texts["none"] != "" {
		t.Errorf("got %q", texts["none"])
	}
}
