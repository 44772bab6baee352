package caddystate

import (
	"strings"
	"sync"
	_ "unsafe" // for go:linkname
)

// EventHooks are Caddy's: functions that are told events, by name.
//
//go:linkname EventHooks github.com/coredns/caddy.eventHooks
var EventHooks *sync.Map

// onHook begins the names of those that run the commands of the directive on. The rest of such a name is random.
const onHook = "on-"

// Hooks are those of the directive on that a configuration has registered. Caddy itself takes the old ones away in a
// reload by signal only: in others the commands of all configurations so far would run.
type Hooks map[string]any

// claimed holds the names of those that a configuration is known to have registered.
var claimed sync.Map

// ClaimHooks returns those that no other configuration has registered.
func ClaimHooks() Hooks {
	ours := Hooks{}
	EventHooks.Range(func(k, hook any) bool {
		name := k.(string)
		if !strings.HasPrefix(name, onHook) {
			return true
		}
		if _, ofAnother := claimed.LoadOrStore(name, nil); !ofAnother {
			ours[name] = hook
		}
		return true
	})
	return ours
}

// Remove takes them out of Caddy's, and Restore puts them there again.
func (h Hooks) Remove() {
	for name := range h {
		EventHooks.Delete(name)
		claimed.Delete(name)
	}
}

func (h Hooks) Restore() {
	for name, hook := range h {
		claimed.Store(name, nil)
		EventHooks.Store(name, hook)
	}
}

// RegisteredHooks is all that there are, but for those that are known to be another configuration's.
func RegisteredHooks() Hooks {
	all := Hooks{}
	EventHooks.Range(func(k, hook any) bool {
		if _, ofAnother := claimed.Load(k); !ofAnother {
			all[k.(string)] = hook
		}
		return true
	})
	return all
}

// Reinstate registers those again that are not there any more. A signal for a reload takes all away at once, also those
// of a configuration that another reload is about to start.
func (h Hooks) Reinstate() {
	for name, hook := range h {
		EventHooks.LoadOrStore(name, hook)
	}
}
