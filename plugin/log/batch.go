package log

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// level is how each line begins.
const level = "[INFO] "

// batches has the lines of each loop. There is one for all Loggers, so that the lines of a loop keep their order
// whatever blocks of the Corefile they are of.
var batches eventloop.PerLoop[batch]

// batch is the lines about a loop's queries since its batch began. They are made in place, without a lock, and handed
// on as one piece when the batch is over: before its replies are sent, so who got one finds the line on its way.
type batch struct {
	facts   replacer.Facts
	lines   []byte
	touched bool // the loop will tell when the batch is over
}

// most is the octets that a loop gathers at one time, and keeps room for: a batch goes on as long as a connection has
// more queries.
const most = 32 << 10

// add adds the line about a query. The caller is in the loop.
func (b *batch) add(ctx context.Context, rule *readyRule, w *wire.Reply, q *wire.Query, took time.Duration) {
	if !b.touched {
		b.touched = true
		q.Loop().Touch(b)
	}
	b.facts.SetQuery(q)
	rule.settle(&b.facts)
	b.facts.SetReply(w, q, took)
	b.lines = append(b.lines, level...)
	b.lines = rule.format.Append(b.lines, ctx, &b.facts)
	b.lines = append(b.lines, '\n')
	// *errors* tells of this query next, at once.
	if len(b.lines) >= most || w.Err() != nil {
		b.handOn()
	}
}

// handOn hands the lines on to the log.
func (b *batch) handOn() {
	clog.Lines(b.lines)
	if b.lines = b.lines[:0]; cap(b.lines) > 2*most {
		b.lines = nil
	}
}

// EndBatch implements eventloop.Batched.
func (b *batch) EndBatch(time.Duration) {
	b.handOn()
	b.facts.WireName, b.facts.WireLooked = nil, nil // they point into the query
	b.touched = false
}
