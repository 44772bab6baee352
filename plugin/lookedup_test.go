package plugin

import "testing"

func TestLookedUp(t *testing.T) {
	NoteLookedUp(t.Context(), "nobody.cares.")
	ctx, name := WithLookedUp(t.Context())
	if got := name(); got != "" {
		t.Errorf("%q was looked up before anything was", got)
	}
	NoteLookedUp(ctx, "a.example.org.")
	NoteLookedUp(ctx, "b.example.org.")
	if got := name(); got != "b.example.org." {
		t.Errorf("%q was looked up last", got)
	}
}
