package conn

import (
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Most connections ask for what is known, take their replies, and are closed or idle. To give each a goroutine costs
// more than that, so they begin without one, as a Light:
//
//	accept ──▶ Light ──something comes──▶ reader: Handler.Turn ──all is answered──▶ Light
//	                                              └── something is left ──▶ Conn, with a goroutine
//
// A reader serves many of them by turns and waits for none. What would have to be waited for is left to a Conn: the
// rest of a message, a query that is not answered at once, a client that does not take its replies; and the end of the
// server. A Conn stays one.

// Light is a connection without a goroutine.
type Light struct {
	Peer    wire.Peer
	Queries int   // that were answered
	Left    *left // the query that is not answered at once, when it becomes a Conn; nil for none
	light         // what the system needs
}

// left is a query that the wire lane has seen, and not answered. Its packet lies in the buffer that the Conn reads on
// from, until it does.
type left struct {
	Service *service.Service // with which it is in flight
	Packet  []byte
	Query   *wire.Query
	Outcome wire.Outcome
	free    func()
}

// Free ends what is left, when the query waits as others do.
func (l *left) Free() {
	l.free()
	l.Service.Inflight.Done()
}

// Turn is the time in which a reader serves what has come on its connections.
type Turn struct {
	exec.Batch
	Service *service.Service
	out     []byte // replies that are not sent yet
}

// Full reports whether so many replies wait that no more should be added.
func (t *Turn) Full() bool { return len(t.out) >= enoughReplies }

// enoughReplies is octets of replies.
const enoughReplies = 64 << 10

// Add sends head and b to the client, when the turn is over.
func (t *Turn) Add(head, b []byte) { t.out = append(append(t.out, head...), b...) }

// LeaveTo leaves packet, which the wire lane has not answered, to the Conn that c becomes. It ends the batch.
func (t *Turn) LeaveTo(c *Light, packet []byte, out wire.Outcome) {
	t.Service.Inflight.Add()
	run := t.LeaveWith()
	c.Left = &left{t.Service, packet, &run.Query, out, run.Free}
}
