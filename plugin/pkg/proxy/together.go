package proxy

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
)

// together decides whether queries for an upstream that leave from one port at one time go to the kernel together.
// There are receivers that are not up to it, such as network stacks of sandboxes: an upstream that answers nothing
// of two batches, though it answers queries that go alone, is asked by single ones for a while. It is guarded by
// the engine's lock.
type together struct {
	last    uint32 // the number of the last batch that went together
	lost    uint32 // that of the last one of which a query was lost
	losses  int    // such batches, since a query of any was answered
	answers bool   // a query that went alone was answered since the first of them
	until   int64  // queries go alone
	told    bool   // the log was
}

const (
	lossesToSuspend = 2
	suspendedFor    = 10 * time.Minute
)

// next is the number of the next batch, 0 if its queries go alone.
func (t *together) next(now int64) uint32 {
	if !mmsg.Segment || now < t.until {
		return 0
	}
	if t.last++; t.last == 0 {
		t.last++
	}
	return t.last
}

// answered notes that a query of a batch, 0 for one that went alone, was answered.
func (t *together) answered(batch uint32) {
	if batch == 0 {
		t.answers = true
		return
	}
	t.losses = 0
}

// missed notes that a query was not answered. It reports whether queries go alone from now on.
func (t *together) missed(batch uint32, now int64) (suspended bool) {
	if batch == 0 || batch == t.lost || now < t.until {
		return false
	}
	if t.lost = batch; t.losses == 0 {
		t.answers = false
	}
	if t.losses++; t.losses < lossesToSuspend || !t.answers {
		return false
	}
	t.suspend(now)
	return true
}

// suspend has queries go alone for a while.
func (t *together) suspend(now int64) {
	t.until, t.losses = now+int64(suspendedFor), 0
}

// tellSuspended counts that, and logs it once. mu is held.
func (e *engine) tellSuspended(why string) {
	segmentationSuspended.WithLabelValues(e.proxy.name, e.proxy.addr).Inc()
	if !e.together.told {
		e.together.told = true
		log.Infof("Upstream %s gets queries one by one for %s: %s", e.proxy.addr, suspendedFor, why)
	}
}
