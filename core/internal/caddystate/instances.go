package caddystate

import (
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/coredns/caddy"
)

// instances is Caddy's list of what runs. The place of what it takes out, behind the end of the list, still holds that:
// all of a configuration that failed to start, the sockets that it opened among it.
//
//go:linkname instances github.com/coredns/caddy.instances
var instances []*caddy.Instance

//go:linkname instancesMu github.com/coredns/caddy.instancesMu
var instancesMu sync.Mutex

// ForgetRemoved has Caddy hold nothing that it has taken out of its list.
func ForgetRemoved() {
	instancesMu.Lock()
	defer instancesMu.Unlock()
	clear(instances[len(instances):cap(instances)])
}
