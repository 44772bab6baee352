package dynupdate

import (
	"sync"

	"github.com/coredns/coredns/plugin/tsig"
)

// maxReplays is how many requests of a zone are known, and how many of all that are passed on.
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

// signings is when requests that are passed on were signed anew, by the signatures that they had before: of the last
// ones, maxReplays at least and twice as many at most.
type signings struct {
	mu           sync.Mutex
	last, before map[tsig.Signature]uint64
}

// passedOn is the signings of the process, which outlives a reload.
var passedOn signings

// first is the time at which a request was signed first, which is now if it has not been. Signed with the same time,
// it is the same request again for who gets it.
func (s *signings) first(sig tsig.Signature, now uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.last[sig]
	if !ok {
		if at, ok = s.before[sig]; !ok {
			at = now
		}
		if len(s.last)%maxReplays == 0 {
			s.last, s.before = map[tsig.Signature]uint64{}, s.last
		}
		s.last[sig] = at
	}
	return at
}
