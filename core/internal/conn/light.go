package conn

import (
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Most connections ask for what is known, take their replies, and are closed or idle. To give each a goroutine costs
// more than that, so they begin without one, as a Light:
//
//	accept ──▶ Light ──something comes──▶ reader: LightHandler.Turn ──all is answered──▶ Light
//	                                                   └── something is left ──▶ Conn, with a goroutine
//
// A reader serves many of them by turns and waits for none. What would have to be waited for is left to a Conn: the
// rest of a message, a query that is not answered at once, a client that does not take its replies; and the end of the
// server. A Conn stays one.

// Light is a connection without a goroutine.
type Light struct {
	Peer    wire.Peer
	Queries int    // that were answered
	Left    *Begun // the query that is not answered at once, when it becomes a Conn; nil for none
	light          // what the system needs
}

// Begun is a query that the wire lane has seen, and not answered. Its packet lies in the buffer that the Conn reads on
// from, until it does.
type Begun struct {
	Service *service.Service // with which it is in flight
	Packet  []byte
	Run     *exec.Run
	Outcome wire.Outcome
}

// LightHandler is what is spoken on connections without a goroutine.
type LightHandler interface {
	// Turn serves what has come on c, b, as far as that can be done at once. n octets of b are served. c stays a Light
	// if that is all of them, and stays is true.
	Turn(t *Turn, c *Light, b []byte) (n int, stays bool)
	// Resume speaks on c what was spoken on from until now, and begins with the query that is left, if there is one.
	Resume(c *Conn, from *Light) Protocol
}

// Turn is the time in which a reader serves what has come on its connections.
type Turn struct {
	Service *service.Service
	Loop    *eventloop.Loop
	Run     *exec.Run
	Began   time.Time
	out     []byte // replies that are not sent yet
}

// Full reports whether so many replies wait that no more should be added.
func (t *Turn) Full() bool { return len(t.out) >= enoughReplies }

// enoughReplies is octets of replies.
const enoughReplies = 64 << 10

// Add sends head and b to the client, when the turn is over.
func (t *Turn) Add(head, b []byte) { t.out = append(append(t.out, head...), b...) }

// Leave leaves packet, which the wire lane has not answered, to the Conn that c becomes.
func (t *Turn) Leave(c *Light, packet []byte, out wire.Outcome) {
	t.Service.Inflight.Add()
	c.Left = &Begun{t.Service, packet, t.Run, out}
	t.Run = exec.NewRun()
}
