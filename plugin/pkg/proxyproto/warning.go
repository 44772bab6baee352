package proxyproto

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// warningInterval is the least time between two warnings of one connection: anybody can send what is warned of.
const warningInterval = 10 * time.Second

// warnings logs dropped datagrams, not too often.
type warnings struct {
	mu     sync.Mutex
	next   time.Time // when the next warning may be logged
	silent int       // drops since the last one
}

// dropped logs that a datagram from peer was dropped, or counts it for a later line.
func (w *warnings) dropped(peer net.Addr, err error, now time.Time) {
	if silent, ok := w.due(now); ok {
		more := ""
		if silent > 0 {
			more = fmt.Sprintf(" (and %d more)", silent)
		}
		log.Warningf("dropping invalid Proxy Protocol packet from %v: %v%s", peer, err, more)
	}
}

// due tells whether a warning may be logged now, and how many were not since the last one.
func (w *warnings) due(now time.Time) (silent int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.next) {
		w.silent++
		return 0, false
	}
	silent, w.silent = w.silent, 0
	w.next = now.Add(warningInterval)
	return silent, true
}
