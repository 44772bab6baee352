package unsent

import (
	"math"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/memory"
)

func TestTake(t *testing.T) {
	defer SetMax(memory.MaxUnsent)
	SetMax(0)
	if !Take(0, math.MaxInt) {
		t.Error("0 is a bound")
	}
	Give(math.MaxInt)
	SetMax(100)
	if !Take(0, 100) || Take(0, 1) || Octets() != 100 {
		t.Errorf("%d octets of 100", Octets())
	}
	if !Take(100, -10) || !Take(90, 0) || !Take(90, 10) { // giving back is never refused
		t.Errorf("%d octets of 100", Octets())
	}
	Give(100)
	if Octets() != 0 {
		t.Errorf("%d octets are left", Octets())
	}
}

// The last quarter is for connections that hold little.
func TestLittle(t *testing.T) {
	defer SetMax(memory.MaxUnsent)
	SetMax(8 * Little)
	greedy := 0
	for Take(greedy, Little/2) {
		greedy += Little / 2
	}
	if greedy != 6*Little {
		t.Errorf("one that does not read has %d octets of %d", greedy, 8*Little)
	}
	others := 0
	for held := 0; Take(held, 100); held = (held + 100) % (Little / 2) { // many of them
		others += 100
	}
	if others < 2*Little-200 || others > 2*Little {
		t.Errorf("others have %d octets of %d", others, 2*Little)
	}
	Give(greedy + others)
	if Octets() != 0 {
		t.Errorf("%d octets are left", Octets())
	}
}
