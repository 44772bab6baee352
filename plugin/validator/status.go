package validator

import (
	"fmt"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/autotrust"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/status"
)

var (
	_ status.Anchors = (*Validator)(nil)
	_ status.Flusher = (*Validator)(nil)
)

// CacheFlush implements status.Flusher: zones whose keys are forgotten are found anew, and what was bogus is judged anew. No
// answer is kept here.
func (v *Validator) CacheFlush(m status.Match) int {
	meant := func(name string) bool { return name == string(m.Name) || m.Below && rrset.Below(name, string(m.Name)) }
	v.failures.forgetIf(func(q validate.Question) bool { return meant(q.Name) && (m.Type == 0 || m.Type == q.Type) })
	if m.Type == 0 || m.Type == rrset.TypeDS || m.Type == rrset.TypeDNSKEY {
		v.memory.nodes.forgetIf(meant)
	}
	return 0
}

// AnchorStatus implements status.Anchors.
func (v *Validator) AnchorStatus() (keys []status.Anchor, negative []status.NegativeAnchor) {
	for name, a := range v.anchors {
		for _, ds := range a.DS {
			keys = append(keys, status.Anchor{Zone: rrset.Text(name), Tag: uint16(ds[0])<<8 | uint16(ds[1]), Algorithm: ds[2], State: "configured"})
		}
		for _, k := range a.Keys {
			keys = append(keys, status.Anchor{Zone: rrset.Text(name), Tag: autotrust.Tag(k), Algorithm: k[3], State: "configured"})
		}
	}
	if t := v.live.Load(); t != nil {
		keys = append(keys, t.states...)
	}
	for name, until := range v.negatives.get() {
		negative = append(negative, status.NegativeAnchor{Name: rrset.Text(name), Ends: until})
	}
	return keys, negative
}

// AddNegative implements status.Anchors.
func (v *Validator) AddNegative(name []byte, d time.Duration) error {
	if d < time.Second || d > longestNTA {
		return fmt.Errorf("a negative trust anchor lasts between 1s and 168h, not %s", d)
	}
	return v.negatives.set(string(name), clock.Now().Add(d), true)
}

// DropNegative implements status.Anchors.
func (v *Validator) DropNegative(name []byte) (bool, error) {
	if _, ok := v.negatives.get()[string(name)]; !ok {
		return false, nil
	}
	return true, v.negatives.set(string(name), time.Time{}, false)
}
