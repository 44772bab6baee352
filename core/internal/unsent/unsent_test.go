package unsent

import (
	"math"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/memory"
)

func TestTake(t *testing.T) {
	defer SetMax(memory.MaxUnsent)
	SetMax(0)
	if !Take(math.MaxInt) {
		t.Error("0 is a bound")
	}
	Give(math.MaxInt)
	SetMax(100)
	if !Take(100) || Take(1) || Octets() != 100 {
		t.Errorf("%d octets of 100", Octets())
	}
	if !Take(-10) || !Take(0) || !Take(10) { // giving back is never refused
		t.Errorf("%d octets of 100", Octets())
	}
	Give(100)
	if Octets() != 0 {
		t.Errorf("%d octets are left", Octets())
	}
}
