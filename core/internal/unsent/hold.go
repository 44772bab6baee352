package unsent

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// longTime is how long a client may take nothing, where another query needs the place that waits for it.
const longTime = time.Second

// Hold begins h, for who waits in a place of those at work until a client takes what it is sent. cut ends that, and
// counts it.
func Hold(h *eventloop.Holder, cut func()) {
	h.Begin(eventloop.AtWork, func() time.Duration { return longTime }, cut)
}
