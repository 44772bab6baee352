package transfer

import (
	"net/netip"
	"testing"
)

// TestTelling: of all changes while a secondary is being told, it is told once more; others are not held up.
func TestTelling(t *testing.T) {
	var now telling
	a, b := target{addr: netip.MustParseAddrPort("192.0.2.1:53")}, target{addr: netip.MustParseAddrPort("192.0.2.2:53")}
	if !now.begin("x.", a) || !now.begin("x.", b) || !now.begin("y.", a) {
		t.Fatal("nobody is told of anything so far")
	}
	for range 3 {
		if now.begin("x.", a) {
			t.Fatal("it is being told")
		}
	}
	if !now.end("x.", a) || now.end("x.", a) || now.end("x.", b) || now.end("y.", a) {
		t.Error("once more, and only the one that has missed something")
	}
	if !now.begin("x.", a) || len(now.now) != 1 {
		t.Error(now.now)
	}
}
