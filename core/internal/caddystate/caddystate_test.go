package caddystate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
)

// registered is the names of Caddy's hooks that this test has registered.
func registered() string {
	var names []string
	EventHooks.Range(func(k, _ any) bool {
		names = append(names, k.(string))
		return true
	})
	slices.Sort(names)
	return strings.Join(names, " ")
}

func register(t *testing.T, name string) {
	caddy.RegisterEventHook(name, func(caddy.EventName, any) error { return nil })
	t.Cleanup(func() { EventHooks.Delete(name) })
}

// Each configuration has the commands that it has registered, whatever else there is.
func TestHooks(t *testing.T) {
	register(t, "other")
	register(t, "on-one")
	one := ClaimHooks()
	register(t, "on-two")
	if all := slices.Sorted(maps.Keys(RegisteredHooks())); strings.Join(all, " ") != "on-two other" {
		t.Errorf("not known to be another configuration's: %v", all)
	}
	two := ClaimHooks()
	if len(one) != 1 || one["on-one"] == nil || len(two) != 1 || two["on-two"] == nil {
		t.Fatalf("claimed %v and %v", one, two)
	}
	one.Remove()
	if got := registered(); got != "on-two other" {
		t.Errorf("left: %s", got)
	}
	one.Restore()
	if got := registered(); got != "on-one on-two other" {
		t.Errorf("restored: %s", got)
	}
	if again := ClaimHooks(); len(again) > 0 {
		t.Errorf("claimed twice: %v", again)
	}
	EventHooks.Delete("on-two")
	two.Reinstate()
	if got := registered(); got != "on-one on-two other" {
		t.Errorf("reinstated: %s", got)
	}
}

// What Caddy has taken out of its list is held by nobody.
func TestForgetRemoved(t *testing.T) {
	was := instances
	defer func() { instances = was }()
	kept, removed := new(caddy.Instance), new(caddy.Instance)
	all := []*caddy.Instance{kept, removed}
	instances = all[:1]
	ForgetRemoved()
	if all[0] != kept || all[1] != nil {
		t.Errorf("the list is %v", all)
	}
}
