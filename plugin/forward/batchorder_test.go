package forward

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/policy"
)

// TestBatchOrder: the queries of a batch have one order under random, and batches draw anew, each upstream as often as
// the others. Other policies, and queries without a loop, take no notice of batches.
func TestBatchOrder(t *testing.T) {
	const upstreams, batches, queries = 5, 2000, 4
	for _, c := range []struct {
		policy string
		loop   bool
		shared bool
	}{
		{"random", true, true},
		{"random", false, false},
		{"round_robin", true, false},
	} {
		t.Run(fmt.Sprintf("%s, in a loop: %t", c.policy, c.loop), func(t *testing.T) {
			f := New()
			f.policy = policy.Named(c.policy)
			var loop *eventloop.Loop
			if c.loop {
				loop = eventloop.New()
				defer loop.Close()
			}
			first := make([]int, upstreams)
			differ := 0
			for range batches {
				if c.loop {
					loop.Enter()
				}
				var last []int
				for range queries {
					order := f.order(loop, nil, nil, upstreams)
					if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, []int{0, 1, 2, 3, 4}) {
						t.Fatalf("the order is %v", order)
					}
					if last != nil && !slices.Equal(order, last) {
						differ++
					}
					last = order
					first[order[0]]++
				}
				if c.loop {
					loop.Done(0)
					loop.Leave()
				}
			}
			if c.shared != (differ == 0) {
				t.Errorf("%d times, queries of one batch had other orders", differ)
			}
			// 2,000 draws, of which each has 400 to expect: 5 standard deviations are 90.
			for up, n := range first {
				if n/queries < 310 || n/queries > 490 {
					t.Errorf("upstream %d was the first for %d of %d queries: %v", up, n, batches*queries, first)
				}
			}
			f.order(loop, nil, nil, upstreams) // an upstream may come or go within a batch
			if order := f.order(loop, nil, nil, 3); len(order) != 3 || slices.Max(order) != 2 {
				t.Errorf("with three upstreams the order is %v", order)
			}
		})
	}
}
