package secondary

import (
	"time"

	"github.com/coredns/caddy"
)

// Whoever takes the place of another server, in this process or a new one, begins when it has the zones that the other one
// has; until then that one answers.

// takeOverTime is how long it waits for them at most.
const takeOverTime = 5 * time.Second

var takeOverWait = takeOverTime // a variable for tests

// crew is the rosters of a configuration. They begin one after the other; then all of them are waited for, so that zones
// whose primaries do not answer cost the time once.
type crew struct {
	rosters []*roster
	begun   int
}

type crewKey struct{}

// crewOf is the crew of the configuration that c sets up.
func crewOf(c *caddy.Controller) *crew {
	all, ok := c.Get(crewKey{}).(*crew)
	if !ok {
		all = new(crew)
		c.Set(crewKey{}, all)
	}
	return all
}

// begins notes that one more roster has begun. The last one returns when all have their zones, but not for long.
func (c *crew) begins() {
	if c.begun++; c.begun < len(c.rosters) {
		return
	}
	takesOver := caddy.IsUpgrade()
	served := map[string]bool{}
	if !takesOver { // what the process before has, it does not tell
		served = offered()
	}
	for end := time.Now().Add(takeOverWait); time.Now().Before(end) && c.lack(takesOver, served); {
		time.Sleep(10 * time.Millisecond)
	}
}

// lack reports whether some zone is not there that is served by what is being replaced.
func (c *crew) lack(takesOver bool, served map[string]bool) bool {
	for _, r := range c.rosters {
		if r.lacks(takesOver, served) {
			return true
		}
	}
	return false
}

func (r *roster) lacks(takesOver bool, served map[string]bool) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for name, z := range r.replicas {
		switch {
		case z.zone.Current() == nil && (takesOver || served[name]):
			return true
		// The other process may be ahead of what is stored.
		case takesOver && !z.checked.Load():
			return true
		case z.borrowed.Load():
			return true
		}
	}
	return false
}

// hasOne reports whether the configuration has no more than one zone of a name. What catalogs will list is not known.
func (c *crew) hasOne(name string) bool {
	n := 0
	for _, r := range c.rosters {
		if r.statics[name] || len(r.catalogs) > 0 {
			n++
		}
	}
	return n <= 1
}

// offered is the zones that are served by what is being replaced, and that nobody has taken.
func offered() map[string]bool {
	offers.Lock()
	defer offers.Unlock()
	zones := map[string]bool{}
	for name := range offers.all {
		zones[name] = true
	}
	return zones
}
