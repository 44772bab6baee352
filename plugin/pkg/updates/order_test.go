package updates

import (
	"slices"
	"sync"
	"testing"
)

// Messages are decided in their order, whoever comes first to decide, and though some are turned down without being waited for.
func TestOrder(t *testing.T) {
	var o Order
	for range 3 { // an Order goes on after a pause
		var mu sync.Mutex
		var decided, want []int
		var all []*Position
		for range 50 {
			all = append(all, o.Begin())
		}
		var wg sync.WaitGroup
		for i, p := range slices.Backward(all) {
			wg.Go(func() {
				defer p.End()
				if i%7 == 3 {
					return
				}
				p.Await(t.Context())
				mu.Lock()
				decided = append(decided, i)
				mu.Unlock()
				p.End()
			})
		}
		wg.Wait()
		for i := range all {
			if i%7 != 3 {
				want = append(want, i)
			}
		}
		if !slices.Equal(decided, want) {
			t.Errorf("got %v", decided)
		}
		if len(o.all) > 0 {
			t.Errorf("%d positions are left", len(o.all))
		}
	}
	var none *Position
	none.Await(t.Context())
	none.End()
	if PositionOf(t.Context()) != nil {
		t.Error("a message without others has a place")
	}
	if one := o.Begin(); PositionOf(WithPosition(t.Context(), one)) != one {
		t.Error("another place")
	}
}
