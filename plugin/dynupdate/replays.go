package dynupdate

import (
	"github.com/coredns/coredns/plugin/tsig"
)

// maxReplays is how many requests of a zone are known.
const maxReplays = 10_000

// replays knows the requests that were handled last, by their signatures: the same one again gets the same answer and
// does nothing, so that who did not get the answer may ask again, and a recorded one is of no use. Older ones are
// refused by their time. The store's lock guards it.
type replays struct {
	answers map[tsig.Signature]answer
	ring    []tsig.Signature
	next    int
}

func (r *replays) init() { r.answers = map[tsig.Signature]answer{} }

// find is what a request was answered before.
func (r *replays) find(sig tsig.Signature) (answer, bool) {
	a, ok := r.answers[sig]
	return a, ok
}

// add notes an answer, in place of the oldest one if there are many.
func (r *replays) add(sig tsig.Signature, a answer) {
	if len(r.ring) < maxReplays {
		r.ring = append(r.ring, sig)
	} else {
		delete(r.answers, r.ring[r.next])
		r.ring[r.next] = sig
		r.next = (r.next + 1) % maxReplays
	}
	r.answers[sig] = a
}

// forget takes an answer back that did not become durable.
func (r *replays) forget(sig tsig.Signature) { delete(r.answers, sig) }
