package parse_test

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/parse"
)

func TestEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1":                        "",
		"192.0.2.1:53":                     "",
		"192.0.2.1:":                       "",
		"192.0.2.1:domain":                 "",
		"dns.example.org:65535":            "",
		"tls://192.0.2.1:853%dns.example":  "",
		"[2001:db8::1]:1":                  "",
		"2001:db8::1":                      "",
		"https://dns.example.org/path:0":   "",
		"http://dns.example.org:8080/path": "",
		"unix:///run/socket:0":             "",
		"":                                 "",
		"192.0.2.1:0":                      `invalid port "0" in "192.0.2.1:0": must be a number from 1 to 65535`,
		"192.0.2.1:65536":                  `invalid port "65536" in "192.0.2.1:65536": must be a number from 1 to 65535`,
		"dns.example.org:-1":               `invalid port "-1" in "dns.example.org:-1": must be a number from 1 to 65535`,
		"http://[2001:db8::1]:nosuch/path": `invalid port "nosuch" in "http://[2001:db8::1]:nosuch/path": must be a number from 1 to 65535`,
	} {
		if got := text(parse.Endpoint(in)); got != want {
			t.Errorf("%q: got error %q, want %q", in, got, want)
		}
	}
}

func TestListenAddr(t *testing.T) {
	for in, want := range map[string]string{
		":9153":           "",
		"localhost:0":     "",
		"[::1]:http":      "",
		"localhost:":      "",
		"localhost":       "address localhost: missing port in address",
		":99999":          `invalid port "99999" in ":99999": must be a number from 0 to 65535`,
		"192.0.2.1:nosuc": `invalid port "nosuc" in "192.0.2.1:nosuc": must be a number from 0 to 65535`,
	} {
		if got := text(parse.ListenAddr(in)); got != want {
			t.Errorf("%q: got error %q, want %q", in, got, want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
