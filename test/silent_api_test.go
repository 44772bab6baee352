//go:build unix

package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// The end of the process does not wait for an API that does not answer, which a reload waits for.
func TestEndWhileAnAPIIsSilent(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	for _, tc := range []struct {
		name, lines string
		by          syscall.Signal
	}{
		{"route53", "route53 example.org:Z1 {\naws_endpoint http://API\n}", syscall.SIGTERM},
		{"route53", "route53 example.org:Z1 {\naws_endpoint http://API\n}", syscall.SIGQUIT},
		{"clouddns", "clouddns example.org:project:zone {\ncredentials none\nendpoint http://API\n}", syscall.SIGTERM},
		{"azure", "azure group:example.org {\ntenant t\nclient c\nsecret s\nsubscription s\nenvironment AZURESTACKCLOUD\n}", syscall.SIGTERM},
		{"dnssec", "dnssec {\nkey aws_secretsmanager some\n}", syscall.SIGTERM},
	} {
		t.Run(tc.name+" "+tc.by.String(), func(t *testing.T) {
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			api, dir := silent.Addr().String(), t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://"+api)
			t.Setenv("AZURE_ENVIRONMENT_FILEPATH", write("cloud", strings.ReplaceAll(`{"activeDirectoryEndpoint": "URL", "resourceManagerEndpoint": "URL"}`, "URL", "https://"+api)))
			block := fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\n", loopback.Port())
			write("Corefile", block+"whoami\n}")
			p := runProgram(t, dir)
			write("Corefile", block+strings.ReplaceAll(tc.lines, "API", api)+"\n}")
			syscall.Kill(p.pid, syscall.SIGUSR1)
			c, err := silent.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			syscall.Kill(p.pid, tc.by)
			p.gone(t)
			eventually.Holds(t, "the reload was given up", func() bool { return strings.Contains(p.out.String(), "context canceled") })
			if out := p.out.String(); strings.Contains(out, "deadline") {
				t.Errorf("the program wrote %s", out)
			}
		})
	}
}
