package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// Kept answers questions from what is kept, or follows from it, without asking anybody. It is for one goroutine at a
// time; what it needs is used again, so that an answer costs little more than finding it.
type Kept struct{ run Run }

// InVain reports whether the last Answer has found nothing, not even an alias that leads on (see Run.Looked).
func (k *Kept) InVain() bool { return !k.run.first.done && k.run.first.name == k.run.first.q.Name }

// Answer is the Result for a question, good until the next one; ok is false if somebody has to be asked. s is what a
// validator wants traced, nil if none does.
func (k *Kept) Answer(conf *Config, q Question, s *advice.Source, now store.Time) (res *Result, ok bool) {
	r := &k.run
	chain, sets, authority := r.first.chain[:0], r.first.sets[:0], r.first.authority[:0]
	*r = Run{conf: conf, now: now, source: s, first: task{q: q, name: q.Name, chain: chain, sets: sets, authority: authority}}
	r.root, r.actions = &r.first, r.wanted[:0]
	r.first.run = r
	if !r.first.had() {
		return nil, false
	}
	r.finish()
	return &r.result, true
}
