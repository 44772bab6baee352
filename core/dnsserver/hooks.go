package dnsserver

import (
	"strings"
	"sync"
	_ "unsafe" // for go:linkname
)

// eventHooks are Caddy's: functions that are told events, by name.
//
//go:linkname eventHooks github.com/coredns/caddy.eventHooks
var eventHooks *sync.Map

// onHook begins the names of those that run the commands of the directive on. The rest of such a name is random.
const onHook = "on-"

// hooks are those of the directive on that a configuration has registered. Caddy itself takes the old ones away in a
// reload by signal only: in others the commands of all configurations so far would run.
type hooks map[string]any

// claimed holds the names of those that a configuration is known to have registered.
var claimed sync.Map

// claimHooks returns those that no other configuration has registered.
func claimHooks() hooks {
	ours := hooks{}
	eventHooks.Range(func(k, hook any) bool {
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

func (h hooks) remove() {
	for name := range h {
		eventHooks.Delete(name)
		claimed.Delete(name)
	}
}

func (h hooks) restore() {
	for name, hook := range h {
		claimed.Store(name, nil)
		eventHooks.Store(name, hook)
	}
}

// registeredHooks is all that there are, but for those that are known to be another configuration's.
func registeredHooks() hooks {
	all := hooks{}
	eventHooks.Range(func(k, hook any) bool {
		if _, ofAnother := claimed.Load(k); !ofAnother {
			all[k.(string)] = hook
		}
		return true
	})
	return all
}

// reinstate registers those again that are not there any more. A signal for a reload takes all away at once, also those
// of a configuration that another reload is about to start.
func (h hooks) reinstate() {
	for name, hook := range h {
		eventHooks.LoadOrStore(name, hook)
	}
}
