package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// This file answers by what was validated for other names (RFC 8198).

// codeSynthesized is the info code of answers that were made of records of other names (RFC 8914 §4.30).
const codeSynthesized = 29

// synthesized takes the task on by what was validated for other names, and reports whether it did: it is done, or goes
// on with another name, as a wildcard is an alias.
func (t *task) synthesized() bool {
	c := t.run.conf
	if c.Synthesize == nil || t.fresh() {
		return false
	}
	e := c.Synthesize(t.name, t.q.Type, t.run.now)
	if e == nil {
		return false
	}
	if c.stubbed(t.name, e.Zone) {
		return false
	}
	t.code, t.told = codeSynthesized, true
	if t.by = e.By; t.name != t.q.Name {
		t.by = nil // what leads here is another's word
	}
	if e.Kind != store.Positive {
		t.deny(&e.Entry)
		return true
	}
	for _, d := range e.Denials {
		t.prove([]*rrset.Set{d.WithTTL(e.TTL)})
	}
	t.use(e.Set.WithTTL(e.TTL))
	return true
}
