package test

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"
)

// A gauge tells of the configuration that runs: a reload with other settings takes away the series that nobody sets any
// more, and one without the plugin all of them.
func TestGaugesGoWithTheirPlugin(t *testing.T) {
	figures, port := loopback.Addr(), loopback.Port()
	server := fmt.Sprintf("dns://127.0.0.1:%d", port)
	_, base := writeZoneKey(t, t.TempDir())
	corefile := func(lines string) string {
		return fmt.Sprintf(".:%d {\nbind 127.0.0.1\nprometheus %s\n%s\nwhoami\n}\n", port, figures, lines)
	}
	anchor := func(zone string) string {
		return "validator {\nanchor \"" + zone + " DS 1 13 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\"\n}\n"
	}
	there := func(what string, want map[string]bool) {
		t.Helper()
		for gauge, label := range map[string]string{
			"coredns_dnssec_cache_entries": server,
			"anchors of one.":              "one.reloaded.", "anchors of other.": "other.reloaded.",
		} {
			name := gauge
			if label != server {
				name = "coredns_validator_anchors"
			}
			if got := test.ScrapeMetricAsInt(figures, name, label, -1) >= 0; got != want[gauge] {
				t.Errorf("%s: %s is there: %t", what, gauge, got)
			}
		}
	}
	i, err := CoreDNSServer(corefile("dnssec example.org {\nkey file " + base + "\n}\n" + anchor("one.reloaded.")))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	for _, step := range []struct {
		what, lines string
		want        map[string]bool
	}{
		{"the same", "dnssec example.org {\nkey file " + base + "\n}\n" + anchor("one.reloaded."), map[string]bool{
			"coredns_dnssec_cache_entries": true, "anchors of one.": true,
		}},
		{"another anchor", "dnssec example.org {\nkey file " + base + "\n}\n" + anchor("other.reloaded."), map[string]bool{
			"coredns_dnssec_cache_entries": true, "anchors of other.": true,
		}},
		{"without the plugins", "", nil},
	} {
		next, err := r.instance.Restart(NewInput(corefile(step.lines)))
		if err != nil {
			t.Fatal(err)
		}
		r.instance = next
		there(step.what, step.want)
	}
}
