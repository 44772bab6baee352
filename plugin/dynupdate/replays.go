package dynupdate

import (
	"sync"

	"github.com/coredns/coredns/plugin/tsig"
)

// maxReplays is how many requests of a zone are known, and how many of all that are passed on.
const maxReplays = 10_000

// replays knows the requests that were handled last, by their signatures, and of each the answer: the same one again gets
// the same answer and does nothing, so that who did not get the answer may ask again, and a recorded one is of no use.
// Older ones are refused by their time. Whoever uses it locks it. Its zero value knows none.
type replays[A any] struct {
	answers map[tsig.Signature]A
	ring    []tsig.Signature
	next    int
}

// find is what a request was answered before.
func (r *replays[A]) find(sig tsig.Signature) (A, bool) {
	a, ok := r.answers[sig]
	return a, ok
}

// add notes an answer, in place of the oldest one if there are many.
func (r *replays[A]) add(sig tsig.Signature, a A) {
	if r.answers == nil {
		r.answers = map[tsig.Signature]A{}
	}
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
func (r *replays[A]) forget(sig tsig.Signature) { delete(r.answers, sig) }

// signings is when requests that are passed on were signed anew, by the signatures that they had before.
type signings struct {
	mu    sync.Mutex
	times replays[uint64]
}

// passedOn is the signings of the process, which outlives a reload.
var passedOn signings

// first is the time at which a request was signed first, which is now if it has not been. Signed with the same time, it is
// the same request again for who gets it.
func (s *signings) first(sig tsig.Signature, now uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.times.find(sig)
	if !ok {
		at = now
		s.times.add(sig, at)
	}
	return at
}
