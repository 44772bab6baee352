package secondary

import (
	"time"

	"github.com/coredns/caddy"
)

// Whoever takes the place of another server, in this process or a new one, begins when it has the zones that the other one
// has; until then that one answers.

// takeOverWait is how long it waits for them at most. It is a variable for tests.
var takeOverWait = 5 * time.Second

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
	wanted := func(string) bool { return true } // whatever the process before has, it does not tell
	if !caddy.IsUpgrade() {
		served := offered()
		wanted = func(zone string) bool { return served[zone] }
	}
	for end := time.Now().Add(takeOverWait); time.Now().Before(end) && c.lack(wanted); {
		time.Sleep(10 * time.Millisecond)
	}
}

// lack reports whether some zone that is wanted is not there.
func (c *crew) lack(wanted func(zone string) bool) bool {
	for _, r := range c.rosters {
		if r.lacks(wanted) {
			return true
		}
	}
	return false
}

func (r *roster) lacks(wanted func(zone string) bool) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for name, z := range r.replicas {
		if z.zone.Current() == nil && wanted(name) {
			return true
		}
	}
	return false
}

// offered is the zones that are served by what is being replaced, and that nobody has taken: now they have other primaries,
// or another key.
func offered() map[string]bool {
	offers.Lock()
	defer offers.Unlock()
	zones := map[string]bool{}
	for _, all := range offers.all {
		for _, l := range all {
			zones[l.replica.name()] = true
		}
	}
	return zones
}
