package forward

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/policy"
)

// batchOrder is an order of upstreams that was drawn for the queries of one batch. These go to one upstream, so they
// leave by one system call and their replies come by one, as if there were no other upstream; each batch draws anew,
// so each upstream has its share. Queries that come one by one are batches of one.
type batchOrder struct {
	drawn   bool // for this batch
	n       int
	numbers [16]int
}

// EndBatch implements eventloop.Batched.
func (b *batchOrder) EndBatch(time.Duration) { b.drawn = false }

// order appends the order in which a query tries n upstreams to numbers. loop is the one that it is served in, nil
// for none.
func (f *Forward) order(loop *eventloop.Loop, view courseView, numbers []int, n int) []int {
	if f.measuring != nil {
		return f.measuring.OrderBy(numbers, n, view)
	}
	if _, random := f.policy.(*policy.Random); !random || loop == nil || n < 2 || n > len(batchOrder{}.numbers) {
		return f.policy.Order(numbers, n)
	}
	b := f.orders.Get(loop)
	if !b.drawn || b.n != n {
		b.drawn, b.n = true, n
		f.policy.Order(b.numbers[:0], n)
		loop.Touch(b)
	}
	return append(numbers, b.numbers[:n]...)
}
