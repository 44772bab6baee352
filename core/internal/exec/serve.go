package exec

import (
	"context"
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// QueryWriter is the way back of one query, for both lanes.
type QueryWriter interface {
	wayBack
	// Peer is who asks, as the wire lane wants to know it.
	Peer() wire.Peer
}

// Serve serves the message of a transport whose goroutine for it may wait: of HTTP, QUIC and gRPC. It begins in the
// wire lane. The error is that packet is no proper query, which has been counted, and about which the transport tells
// the client in its own way; or ErrCrowded. A message that a block takes over other transports only gets NOTIMP. packet
// is not kept.
func Serve(ctx context.Context, s *service.Service, w QueryWriter, packet []byte) error {
	n := placesOf(len(packet))
	if !large.take(n) { // who waited for them would have the packet
		s.Limited("waiting")
		return ErrCrowded
	}
	defer large.give(n)
	if s.Wire {
		if done, err := answerWire(ctx, s, w, packet); done {
			return err
		}
	}
	r, err := Receive(s, w, packet, true)
	if r == nil {
		return err
	}
	if !Enter(ctx) {
		s.Limited("waiting")
		return ErrCrowded
	}
	defer Leave()
	s.ServeDNS(context.WithValue(ctx, eventloop.PlaceKey{}, eventloop.AtWork), w, r)
	return nil
}

// waiting are the places of a query whose goroutine waits while it is parked.
const waiting = eventloop.Parked | eventloop.AtWork

// answerWire answers packet in the wire lane, if it can be. A query that is parked has the place of one that waits, for
// its goroutine does.
func answerWire(ctx context.Context, s *service.Service, w QueryWriter, packet []byte) (done bool, err error) {
	peer := w.Peer()
	peer.Arrival = time.Now()

	loop := BorrowLoop() // before the Run: of all who wait for a loop each would have one, with the memory of a reply
	r := newRunIn(ctx)
	defer func() {
		if r != nil {
			r.Free()
		}
	}()
	r.Query.SetCrowded(allAtWork, waiting) // else each stream of a client would have an exchange begun
	reply, out := r.Serve(s, packet, peer, loop, nil)
	r.Query.SetCrowded(nil, waiting)
	loop.Done(time.Since(peer.Arrival))
	loop.Leave()
	entered := false
	defer func() {
		if entered {
			Leave()
		}
	}()
	var ended eventloop.Exchange
	for out != wire.Done {
		first, x := !entered, r.Query.Awaited()
		if first && out != wire.Unpack {
			if !Enter(ctx) {
				s.Limited("waiting")
				return true, ErrCrowded
			}
			entered = true
		}
		switch {
		case out == wire.Park && x != nil && x != ended:
			ended = x
			parked.Add(1)
			r.Free() // of all who wait each would have one
			r = nil  // not twice, should an exchange of a plugin's own panic
			var woken sleeper
			woken.Lock()
			ended.Then(&woken)
			woken.Lock()
			r = newRunIn(ctx)
		case !first || out == wire.Unpack:
			return false, nil
		}
		reply, out = r.Serve(s, packet, peer, nil, ended)
	}
	if entered {
		entered = false
		Leave() // others may have the place while the client takes its reply
	}
	if reply != nil {
		w.Send(reply)
	}
	return true, nil
}

// newRunIn is NewRun for a query of which a goroutine waits, and whose time is over when ctx is.
func newRunIn(ctx context.Context) *Run {
	r := NewRun()
	r.Query.SetCrowded(nil, waiting)
	r.Deadline, _ = ctx.Deadline()
	return r
}

// sleeper is a goroutine that waits for an exchange, parked.
type sleeper struct{ sync.Mutex }

// Resume implements eventloop.Resumer. Who has ended the exchange to make room finds it made.
func (s *sleeper) Resume() {
	parked.Add(-1)
	s.Unlock()
}
