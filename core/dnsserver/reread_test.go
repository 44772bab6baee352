package dnsserver

import (
	"testing"

	"github.com/coredns/caddy"
)

// A program that gave its text to caddy.Start is not served the built-in configuration by a reload.
func TestReread(t *testing.T) {
	input := func(text string) caddy.Input {
		return caddy.CaddyfileInput{ServerTypeName: serverType, Filepath: "Corefile", Contents: []byte(text)}
	}
	found := input("")
	caddy.SetDefaultCaddyfileLoader("test", caddy.LoaderFunc(func(string) (caddy.Input, error) {
		if len(found.Body()) == 0 {
			return nil, nil
		}
		return found, nil
	}))
	builtIn := string(caddy.DefaultInput(serverType).Body())
	for _, tc := range []struct{ running, found, want string }{
		{"running.example:0 {\n}\n", "", ""},
		{"running.example:0 {\n}\n", "found.example:0 {\n}\n", "found.example:0 {\n}\n"},
		{"running.example:0 {\n}\n", "running.example:0 {\n}\n", "running.example:0 {\n}\n"},
		{builtIn, "", builtIn},
	} {
		found = input(tc.found)
		got, err := reread(input(tc.running))
		if tc.want == "" && err != errNoLoader || tc.want != "" && (err != nil || string(got.Body()) != tc.want) {
			t.Errorf("%q runs, %q is found: %v, %v", tc.running, tc.found, got, err)
		}
	}
	found = input("")
}
