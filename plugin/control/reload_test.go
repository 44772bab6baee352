package control

import (
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/whoami"

	"github.com/coredns/caddy"
)

// A program that gave its text to caddy.Start, and has no loader, goes on with it when it is told to reload: what is built in is not
// served instead.
func TestReloadWithoutLoader(t *testing.T) {
	caddy.Quiet, dnsserver.Quiet, dnsserver.Port = true, true, "0"
	i, err := caddy.Start(caddy.CaddyfileInput{ServerTypeName: "dns", Filepath: "Corefile", Contents: []byte(".:0 {\n\tbind 127.0.0.1\n}\n")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, i := range caddy.Instances() { // whichever runs now
			i.ShutdownCallbacks()
			i.Stop()
		}
	}()
	if err := reload(i); err == nil || caddy.Instances()[0] != i {
		t.Errorf("reloaded: %v", err)
	}
}
