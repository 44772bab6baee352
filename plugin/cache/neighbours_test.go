package cache

import (
	"reflect"
	"testing"

	"github.com/coredns/coredns/plugin"

	"github.com/coredns/caddy"
)

var (
	asking bool        // what asksNeighbours says of the last block with "asking"
	heard  []listeners // those of port 1053, for each such block
)

func init() {
	plugin.Register("asking", func(c *caddy.Controller) error {
		asking = asksNeighbours(c)
		heard = append(heard, listenersOf(c)["1053"])
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

// With thousands of blocks, each of which looked at all others, the start took half a minute.
func TestListenersOnce(t *testing.T) {
	heard = nil
	corefile := "a.example:1053 {\nbind 192.0.2.1\nasking\n}\nb.example:1053 {\nbind 192.0.2.2\nasking\n}"
	if err := caddy.ValidateAndExecuteDirectives(corefileOf(corefile), nil, true); err != nil {
		t.Fatal(err)
	}
	if len(heard) != 2 || len(heard[0]) != 2 || reflect.ValueOf(heard[0]).Pointer() != reflect.ValueOf(heard[1]).Pointer() {
		t.Errorf("blocks see %v, want the same two listeners, gathered once", heard)
	}
}
