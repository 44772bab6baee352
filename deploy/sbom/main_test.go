package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

// A bill has the program, the standard library and each module, as it is in there: the replacement, not what is replaced.
func TestBillOf(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.1", Main: debug.Module{Path: "example.org/dns", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v2.0.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-X secret"}},
	}
	b := billOf(info, "2.0.0")
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,"metadata":{"component":{"bom-ref":"pkg:golang/example.org/dns@2.0.0","type":"application",`,
		`"properties":[{"name":"build:GOOS","value":"linux"}]`,
		`"purl":"pkg:golang/std@1.26.1"`,
		`"purl":"pkg:golang/example.org/a@v1.2.3","hashes":[{"alg":"SHA-256","content":"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"}]`,
		`"purl":"pkg:golang/example.org/c@v2.0.0"}`,
		`"dependsOn":["pkg:golang/std@1.26.1","pkg:golang/example.org/a@v1.2.3","pkg:golang/example.org/c@v2.0.0"]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if len(b.Components) != 3 || strings.Contains(string(text), "example.org/b") || strings.Contains(string(text), "secret") {
		t.Errorf("it tells too much, or not enough: %s", text)
	}
}
