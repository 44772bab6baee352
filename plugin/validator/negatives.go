package validator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/autotrust"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/status"

	"github.com/miekg/dns"
)

// mended is how often it is looked whether the name of a negative trust anchor validates again, for the first time as long
// after it began: it may be there for what is broken below a name that is not.
const mended = 5 * time.Minute

// turned has what is kept of names at and below these forgotten by all of the block that keep something: whether they are
// validated has changed, and so has what clients are to get (RFC 7646 §2). Caches stand above, and come last: what they
// were told before that they do not keep.
func (v *Validator) turned(names []string) {
	for _, h := range slices.Backward(v.block()) {
		f, ok := h.(status.Flusher)
		for i := 0; ok && i < len(names); i++ {
			f.CacheFlush(status.Match{Name: []byte(names[i]), Below: true})
		}
	}
	select {
	case v.keeper.turns <- struct{}{}:
	default:
	}
}

// endOver takes negative trust anchors away whose time is over. It asks nobody.
func (k *keeper) endOver(now time.Time) {
	for _, name := range k.negatives.ended(now) {
		k.drop(name, "its time is over")
	}
}

// endMended takes negative trust anchors away that are not needed any more (RFC 7646 §4).
func (k *keeper) endMended(ctx context.Context, now time.Time) {
	for _, name := range k.negatives.due(now) {
		if ctx.Err() != nil {
			return
		}
		if k.holdsAgain(ctx, name) {
			k.drop(name, "the name validates again")
		}
	}
}

func (k *keeper) drop(name, why string) {
	if err := k.negatives.set(name, time.Time{}, false); err != nil {
		logger.Errorf("Negative trust anchor %s, which is to end as %s: %v", rrset.Text(name), why, err)
		return
	}
	logger.Infof("Negative trust anchor %s has ended: %s", rrset.Text(name), why)
}

// holdsAgain reports whether a name is secure without its negative trust anchor.
func (k *keeper) holdsAgain(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	i := k.inquire(ctx, validate.Question{Name: name, Type: dns.TypeSOA})
	i.positive, i.anew = name, true
	reply, _, _ := i.ask(i.q, i.query)
	if reply == nil {
		return false
	}
	verdict, _ := i.judge(reply)
	return verdict.Status == validate.Secure
}

// signalName is the name that tells a zone's servers which keys are believed: _ta- and the tags in hexadecimal, in order
// (RFC 8145 §5.1). It is empty if there are none, or more than a label holds.
func signalName(zone string, a *validate.Anchor) string {
	var tags []uint16
	for _, ds := range a.DS {
		tags = append(tags, uint16(ds[0])<<8|uint16(ds[1]))
	}
	for _, key := range a.Keys {
		tags = append(tags, autotrust.Tag(key))
	}
	slices.Sort(tags)
	label := "_ta"
	for _, t := range slices.Compact(tags) {
		label += fmt.Sprintf("-%04x", t)
	}
	if len(tags) == 0 || len(label) > 63 {
		return ""
	}
	return string(byte(len(label))) + strings.ToLower(label) + zone
}
