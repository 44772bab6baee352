package dnsserver

import (
	"sync/atomic"
	"time"
)

// tempo tells whether the queries of a listener's message lane are served by the goroutine that reads them, or by workers. It
// is not known beforehand whether a handler waits, so it goes by how long handlers have taken: the time that a query costs
// less without a worker is credit, and what one that takes long holds up others for is debit.
type tempo struct {
	credit atomic.Int64 // time.Duration, from 0 to mostCredit
	quick  atomic.Bool  // handlers have been quick for long
}

const (
	// saved is what a quick query costs less without a worker.
	saved = 2 * time.Microsecond
	// slowRun is what is counted of one that is not quick at most: it may have waited for a processor, for which it cannot help.
	slowRun = time.Millisecond
	// relieved is the debit for one that was so slow that another goroutine leads the loop on. See relief.
	relieved = 3 * reliefPeriod / 2
	// Workers are done without when there is much credit, until there is none.
	muchCredit, mostCredit = relieved, 4 * relieved
)

// quickRun is what a handler takes at most that is quick: less than what it takes to ask somebody else.
var quickRun = 25 * time.Microsecond

// alwaysWorkers makes all queries in the message lane take workers.
var alwaysWorkers bool

// gain is the credit for a query whose handlers took d.
func gain(d time.Duration) time.Duration {
	if d <= quickRun {
		return saved
	}
	return -min(d, slowRun)
}

// add adds to the credit, or takes from it.
func (t *tempo) add(d time.Duration) {
	c := t.credit.Add(int64(d))
	switch {
	case c > int64(mostCredit):
		t.credit.CompareAndSwap(c, int64(mostCredit))
	case c < 0:
		t.credit.CompareAndSwap(c, 0)
		if t.quick.Load() {
			t.quick.Store(false)
		}
	}
	if c >= int64(muchCredit) && !t.quick.Load() && !alwaysWorkers {
		t.quick.Store(true)
	}
}
