package test

import (
	"errors"
	"strings"
	"testing"
)

// What keeps a server from starting names the plugin and the place of its directive.
func TestStartErrors(t *testing.T) {
	for lines, want := range map[string]string{
		"health 192.0.2.1:1":                                "plugin/health: Corefile:3: opening the endpoint: listen tcp ",
		"ready 192.0.2.1:1":                                 "plugin/ready: Corefile:3: opening the endpoint: listen tcp ",
		"pprof 192.0.2.1:1":                                 "plugin/pprof: Corefile:3: opening the endpoint: listen tcp ",
		"k8s_external example.org":                          "plugin/k8s_external: Corefile:3: kubernetes plugin not loaded: this server block needs it, too",
		"forward . nope.invalid {\nresolver 127.0.0.1:1\n}": `plugin/forward: Corefile:3: failed to resolve "nope.invalid": `,
		"forward a.example 127.0.0.1\nfailstart":            "plugin/failstart: Corefile:4: " + errFails.Error(),
	} {
		i, err := CoreDNSServer(".:0 {\nbind 127.0.0.1\n" + lines + "\n}")
		if err == nil {
			(&running{i}).end()
			t.Errorf("%s: it starts", lines)
			continue
		}
		if !strings.HasPrefix(err.Error(), want) || strings.HasPrefix(lines, "forward a") && !errors.Is(err, errFails) {
			t.Errorf("%s: %v\nwant %s", lines, err, want)
		}
	}
}
