package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

// What a plugin misses in its block, or in its files, is found when a configuration is only looked at, in the words of a
// start.
func TestValidateRefusesAsAStart(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("this is no state\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(t.TempDir(), "not there", "state")
	for name, lines := range map[string]string{
		"k8s_external without kubernetes": "k8s_external example.org",
		"autopath of no AutoPather":       "autopath @whoami",
		"transfer without the key":        "transfer {\nto 127.0.0.1\ntsig a.key\n}",
		"secondary without the key":       "secondary example.org {\ntransfer from 127.0.0.1\ntsig a.key\n}",
		"dynupdate without the key":       "dynupdate example.org {\nallow a.key * *\nforward 127.0.0.1 tsig b.key\n}",
		"validator, damaged state":        "validator {\nstate " + damaged + "\n}",
		"validator, damaged nta_file":     "validator {\nnta_file " + damaged + "\n}",
		"validator, no folder":            "validator {\nstate \"" + lost + "\"\n}",
		"dnstap without certificate":      "dnstap listen tls://127.0.0.1:0 full",
	} {
		t.Run(name, func(t *testing.T) {
			text := ".:0 {\nbind 127.0.0.1\n" + lines + "\nwhoami\n}"
			i, want := CoreDNSServer(text)
			if want == nil {
				CoreDNSServerStop(i)
				t.Fatal("it starts")
			}
			if err := dnsserver.Validate(NewInput(text)); err == nil || err.Error() != want.Error() {
				t.Errorf("got %v, a start fails with %v", err, want)
			}
		})
	}
}
