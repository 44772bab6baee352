// Package within decides which names a forwarding plugin is for: those in a zone, but for some zones below it.
// Start at Zones.Match.
package within

import (
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Zones is the names in From that are in none of those that Except was told of. From is a lower-case name in wire form.
// A Zones may be used by any number of goroutines while it does not change; a copy of it shares what is excepted.
type Zones struct {
	From   []byte
	except [][]byte
	index  *wire.Suffixes[struct{}] // of except; nil while there are few
}

// few is how many names are gone through faster than found in an index.
const few = 8

// Except leaves out names, lower-case and in wire form, and all below them.
func (z *Zones) Except(names ...[]byte) {
	z.except = append(z.except, names...)
	if len(z.except) <= few {
		return
	}
	if z.index == nil {
		z.index, names = new(wire.Suffixes[struct{}]), z.except
	}
	for _, name := range names {
		z.index.Set(name, struct{}{})
	}
}

// Excepted is what is left out, in the order in which Except was told.
func (z *Zones) Excepted() [][]byte { return z.except }

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
	if z.index != nil {
		_, ok := z.index.Longest(name)
		return !ok
	}
	for _, zone := range z.except {
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
