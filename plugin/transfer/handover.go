package transfer

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
)

// What clients may be sent in increments survives a reload: who comes next in a block of the same keys gets the journals, with the
// versions that they lead to, and compares these with the first ones of its own.
//
//	old: OnRestart, offers ──▶ new: OnStartup, inherits ──▶ Changed, the first version of a zone: the rest of the way is added

// legacy is what is known of a zone.
type legacy struct {
	version *zone.Zone
	journal zone.Journal // up to that version
}

// offers are the legacies of an instance that is being replaced, by its block's keys.
var offers struct {
	sync.Mutex
	all map[string]*offer
}

type offer struct {
	owner *Transfer
	zones map[string]legacy // nil if several blocks have these keys: one may not get another one's
}

// inheritFor is how long a zone may take to come, such as from its primary. Later ones begin anew.
const inheritFor = 5 * time.Minute

// blockOf is the text of a block's keys.
func blockOf(keys []string) string { return strings.Join(keys, " ") }

// offer makes what t knows the next one's.
func (t *Transfer) offer() {
	t.mu.Lock()
	zones := make(map[string]legacy, len(t.versions))
	for name, v := range t.versions {
		l := legacy{version: v}
		if j := t.journals[name]; j != nil {
			l.journal = *j
		}
		zones[name] = l
	}
	t.mu.Unlock()
	offers.Lock()
	defer offers.Unlock()
	if offers.all == nil {
		offers.all = map[string]*offer{}
	}
	if o := offers.all[t.block]; o != nil && o.owner != t {
		o.zones = nil
		return
	}
	offers.all[t.block] = &offer{t, zones}
}

// inherit takes what the one before offers, if anything.
func (t *Transfer) inherit() {
	offers.Lock()
	o := offers.all[t.block]
	delete(offers.all, t.block)
	offers.Unlock()
	if o == nil || len(o.zones) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inherited = o.zones
	t.forgetting = time.AfterFunc(inheritFor, t.forget)
}

// forget gives up what nobody has claimed.
func (t *Transfer) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inherited = nil
	if t.forgetting != nil {
		t.forgetting.Stop()
	}
}

// withdraw ends an offer that nobody took.
func (t *Transfer) withdraw() {
	offers.Lock()
	defer offers.Unlock()
	maps.DeleteFunc(offers.all, func(_ string, o *offer) bool { return o.owner == t })
}

// legacyOf is what was inherited of a zone, whose first version is there now; it is given once.
func (t *Transfer) legacyOf(name string) (l legacy, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok = t.inherited[name]
	delete(t.inherited, name)
	return l, ok
}
