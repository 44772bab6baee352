package zone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// TestServiceAgrees: of an SVCB or HTTPS record that contradicts itself the log warns, and it stays.
func TestServiceAgrees(t *testing.T) {
	for text, want := range map[string]bool{
		"SVCB 0 x.example.org.": true, "SVCB 1 .": true, "HTTPS 1 . alpn=h2": true, "HTTPS 1 . alpn=h2 no-default-alpn": true, "SVCB 1 . mandatory=alpn,port alpn=h2 port=53": true,
		"SVCB 1 . key667=x": true, "HTTPS 1 . alpn=": false, "HTTPS 1 . no-default-alpn": false, "SVCB 1 . mandatory=port": false, "SVCB 1 . mandatory=mandatory": false,
		"SVCB 1 . mandatory=alpn,port alpn=h2": false,
	} {
		var warnings []string
		b := NewBuilder(wire.MustName("example.org"), func(f string, a ...any) { warnings = append(warnings, fmt.Sprintf(f, a...)) })
		for _, s := range []string{"example.org. 5 SOA a. b. 1 2 3 4 5", "w.example.org. 5 " + text} {
			rr, err := dns.NewRR(s)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if err := add(b, rr); err != nil {
				t.Fatal(err)
			}
		}
		z, err := b.Build()
		if err != nil || z.Records() != 2 {
			t.Fatalf("%s: %v", text, err)
		}
		if said := len(warnings) == 1 && strings.Contains(warnings[0], "w.example.org., type "+strings.Fields(text)[0]+", contradicts itself"); said == want || want && len(warnings) > 0 {
			t.Errorf("%s: %q", text, warnings)
		}
	}
}
