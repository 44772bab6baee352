package advice

import (
	"context"
	"slices"
)

// Detour is how a forwarder has something answered that an upstream may have answered wrongly before. Upstreams are
// told by their addresses. It is for one goroutine.
type Detour struct {
	First string   // is asked before all others, whatever the policy; empty for none
	Last  []string // are asked when none of the others answers
	Took  func(upstream string)
}

type detourKey struct{}

// WithDetour is ctx with a Detour for the query that is asked with it.
func WithDetour(ctx context.Context, d *Detour) context.Context {
	return context.WithValue(ctx, detourKey{}, d)
}

// DetourOf is the Detour of a query, nil if there is none.
func DetourOf(ctx context.Context) *Detour {
	d, _ := ctx.Value(detourKey{}).(*Detour)
	return d
}

// Sort brings upstreams into d's order, and changes nothing else in theirs.
func Sort[T any](d *Detour, order []T, addr func(upstream T) string) {
	rank := func(up T) int {
		switch a := addr(up); {
		case slices.Contains(d.Last, a):
			return 2
		case a == d.First:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b T) int { return rank(a) - rank(b) })
}
