package log

import (
	"math"
	"math/rand/v2"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// sampler chooses one of so many queries by chance, each without regard to the others.
//
// A draw for each query takes 15 ns, which is most of what queries pay that are not logged. So a loop draws how many it
// passes over until the next one: the gaps between what is chosen with probability 1/n have a geometric distribution,
// and so the outcome is the same.
type sampler struct {
	one   int // of so many; 0 and 1: all are chosen
	loops eventloop.PerLoop[gap]
}

// gap is how many queries of a loop are still passed over before the next one is chosen.
type gap struct {
	left  uint64
	begun bool // left was drawn
}

// chosen reports whether a query is in the sample. l is the loop that the caller is in, nil for none.
func (s *sampler) chosen(l *eventloop.Loop) bool {
	switch {
	case s.one <= 1:
		return true
	case l == nil:
		return rand.IntN(s.one) == 0
	}
	g := s.loops.Get(l)
	if !g.begun {
		g.begun, g.left = true, s.draw()
	}
	if g.left > 0 {
		g.left--
		return false
	}
	g.left = s.draw()
	return true
}

// draw is a gap by chance, a number of queries. It is inverse sampling: the chance of k or more is (1-1/one)^k.
func (s *sampler) draw() uint64 {
	u := 1 - rand.Float64() // above 0, at most 1
	return uint64(math.Log(u) / math.Log1p(-1/float64(s.one)))
}
