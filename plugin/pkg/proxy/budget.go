package proxy

import (
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/memory"
)

const (
	minSockets = 16    // to each upstream, whatever others have
	maxSockets = 1024  // to one upstream
	allSockets = 20480 // of the process; there are some 28,000 ports for all of a machine, usually
)

// socketBudget bounds the UDP sockets to all upstreams: they share the process's descriptors and the
// machine's ports, of which the rest must be left for others.
var socketBudget = budget{limit: int64(min(allSockets, memory.Files()/2))}

type budget struct {
	limit int64
	used  atomic.Int64
}

// take takes one and reports true, or reports false if nothing is left. must takes in any case.
func (b *budget) take(must bool) bool {
	if b.used.Add(1) <= b.limit || must {
		return true
	}
	b.used.Add(-1)
	return false
}

func (b *budget) give() { b.used.Add(-1) }
