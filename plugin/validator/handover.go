package validator

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/resolver/autotrust"
)

// A reload that does not concern a validator forgets nothing: the one whose stanza has the same text, and the same
// anchors in its file, begins with what the one before it knows. Both serve for a while.

// living is the validators that serve, by the text of their stanzas. Of several with one text the last one is followed; if
// that ends first, as one whose configuration fails to start, the one before it is.
var living = struct {
	mu  sync.Mutex
	all map[string][]*Validator
}{all: map[string][]*Validator{}}

// enter has v follow the validator of a text.
func enter(text string, v *Validator) {
	living.mu.Lock()
	defer living.mu.Unlock()
	all := living.all[text]
	if n := len(all); n > 0 && reflect.DeepEqual(all[n-1].anchors, v.anchors) {
		v.inherit(all[n-1])
	}
	living.all[text] = append(all, v)
}

// leave ends what enter began.
func leave(text string, v *Validator) {
	living.mu.Lock()
	defer living.mu.Unlock()
	all := slices.DeleteFunc(living.all[text], func(o *Validator) bool { return o == v })
	if living.all[text] = all; len(all) == 0 {
		delete(living.all, text)
	}
}

// inherit takes over what o knows: of zones, RRsets and bogus answers, and what would be in its files, if it has none. v
// does not serve yet.
func (v *Validator) inherit(o *Validator) {
	v.memory.nodes.inherit(&o.memory.nodes)
	v.memory.checks.inherit(&o.memory.checks)
	v.memory.walked.inherit(&o.memory.walked)
	v.failures.inherit(&o.failures)
	if v.state == "" {
		followed := o.live.Load().followed
		for _, z := range v.keeper.zones {
			z.Keys = slices.Clone(followed[z.Name])
		}
	}
	if v.ntaFile == "" {
		v.negatives.inherit(&o.negatives)
	}
}

// inherit takes over what o has.
func (g *generations[K, V]) inherit(o *generations[K, V]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g.young, g.old, g.octets = maps.Clone(o.young), maps.Clone(o.old), o.octets
}

// inherit takes over what was added to o at run time.
func (n *ntas) inherit(o *ntas) {
	o.mu.Lock()
	all, own := o.get(), maps.Clone(o.own)
	o.mu.Unlock()
	for name, until := range all {
		if own[name] {
			_ = n.set(name, until, true) // there is no file
		}
	}
}

// followed is the keys of zones whose keys are followed.
func followed(zones []*autotrust.Zone) map[string][]autotrust.Key {
	all := map[string][]autotrust.Key{}
	for _, z := range zones {
		all[z.Name] = slices.Clone(z.Keys)
	}
	return all
}
