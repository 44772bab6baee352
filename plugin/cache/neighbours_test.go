package cache

import (
	"testing"

	"github.com/coredns/coredns/plugin"

	"github.com/coredns/caddy"
)

var asking bool // what asksNeighbours says of the block with "asking"

func init() {
	plugin.Register("asking", func(c *caddy.Controller) error {
		asking = asksNeighbours(c)
		return nil
	})
}

func TestAsksNeighbours(t *testing.T) {
	for _, tc := range []struct {
		to   string
		want bool
	}{
		{"127.0.0.1:1053", true},
		{"dns://[::1]:1053", true},
		{"localhost:1053", true},
		{"192.0.2.9 192.0.2.1:1053", true},
		{"tls://127.0.0.1%dns.example.org", true},
		{"192.0.2.2:1053", false}, // nobody listens there
		{"127.0.0.1:1054", false},
		{"127.0.0.1", false},
		{"192.0.2.1:1054", false},
		{"127.0.0.1:1054 {\nexcept 127.0.0.1\nmax_fails 1053\n}", false},
	} {
		corefile := ".:2053 {\nasking\nforward . " + tc.to + "\n}\n" +
			"example.org:1053 {\nbind 192.0.2.1\n}\ntls://example.org {\nbind 192.0.2.1\n}"
		if err := caddy.ValidateAndExecuteDirectives(corefileOf(corefile), nil, true); err != nil {
			t.Errorf("%s: %v", tc.to, err)
		} else if asking != tc.want {
			t.Errorf("%s: asks neighbours: %v, want %v", tc.to, asking, tc.want)
		}
	}
}
