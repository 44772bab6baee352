package forward

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// A query that comes when as many wait as may takes the place of one that has waited for patience: most answers come
// sooner, and of names whose servers are silent, none comes. Otherwise a few of these had all places.
const (
	patience  = 200 * time.Millisecond
	lookAgain = 10 * time.Millisecond // after none had waited so long
)

// looked is when it was found that none had.
var looked atomic.Int64

var epoch = time.Now()

// makeRoom reports whether there is room for q now.
func makeRoom(q *wire.Query) bool {
	if !q.GivesWay() { // its places are others
		return false
	}
	now := time.Now()
	since := int64(now.Sub(epoch))
	if since-looked.Load() < int64(lookAgain) {
		return false
	}
	// Who waits for one that gave way may wait on, for another one.
	for range 2 {
		if !proxy.GiveWay(now.Add(-patience)) {
			looked.Store(since)
			return false
		}
		if !q.Crowded() {
			return true
		}
	}
	return false
}
