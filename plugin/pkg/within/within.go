// Package within decides which names a forwarding plugin is for: those in a zone, but for some zones below it.
// Start at Zones.Match.
package within

import (
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Zones is the names in From that are in none of Except. All are lower-case names in wire form. A Zones may be used
// by any number of goroutines while it does not change.
type Zones struct {
	From   []byte
	Except [][]byte
}

// Match reports whether q's name is one of them.
func (z *Zones) Match(q *wire.Query) bool { return z.Cover(q.Lower()) }

// MatchMsg is Match for a message. One without a question is about the root.
func (z *Zones) MatchMsg(r *dns.Msg) bool {
	if len(r.Question) == 0 {
		return z.Cover(wire.Root)
	}
	var buf [wire.MaxName + 1]byte
	name, err := wire.AppendName(buf[:0], r.Question[0].Name)
	if err != nil {
		return false
	}
	wire.Lower(name, name)
	return z.Cover(name)
}

// Cover decides about a lower-case name. From itself is never excepted.
func (z *Zones) Cover(name []byte) bool {
	if !wire.Below(name, z.From) {
		return false
	}
	// Else an exception of the zone itself would leave nothing.
	if len(name) == len(z.From) {
		return true
	}
	for _, zone := range z.Except {
		if wire.Below(name, zone) {
			return false
		}
	}
	return true
}

// Zone is the lower-case name of one zone, or of the first one of a network; all are those that text stands for, as
// plugin.Host makes them of it.
func Zone(text string, all []string) ([]byte, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("unable to normalize '%s'", text)
	}
	name, err := wire.LowerName(all[0])
	if err != nil {
		return nil, fmt.Errorf("unable to normalize '%s': %w", text, err)
	}
	return name, nil
}
