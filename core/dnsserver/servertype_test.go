package dnsserver

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/caddy"
)

// The server type is registered by the import, and any number of calls, at one time, find it so.
func TestRegister(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := Register(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if !slices.Contains(caddy.ListPlugins()["server_types"], serverType) {
		t.Errorf("server types: %v", caddy.ListPlugins()["server_types"])
	}
}

// A server type of somebody else's is not replaced.
func TestRegisterBesideAnother(t *testing.T) {
	if err := registerType(); err == nil || !strings.Contains(err.Error(), `server type "dns"`) {
		t.Errorf("got %v", err)
	}
}

func TestSetDirectives(t *testing.T) {
	old := Directives
	defer func() { Directives = old }()
	names := []string{"log", "not yet registered", "errors"}
	if err := SetDirectives(names); err != nil {
		t.Fatal(err)
	}
	names[0] = "changed"
	want := []string{"log", "not yet registered", "errors"}
	if !slices.Equal(Directives, want) || !slices.Equal(caddy.ValidDirectives(serverType), want) {
		t.Errorf("got %q, %q", Directives, caddy.ValidDirectives(serverType))
	}
	for _, bad := range [][]string{{"a", ""}, {"a", "b", "a"}} {
		if err := SetDirectives(bad); err == nil || !slices.Equal(Directives, want) {
			t.Errorf("%q: %v, now there are %q", bad, err, Directives)
		}
	}
}
