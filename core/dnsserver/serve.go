package dnsserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// queryWriter is the way back of one query, for both lanes.
type queryWriter interface {
	dns.ResponseWriter
	// peer is who asks, as the wire lane wants to know it.
	peer() wire.Peer
	// send sends a reply of the wire lane. b is not kept.
	send(b []byte) error
	// verify checks the signature of the query r, which came as packet.
	verify(packet []byte, r *dns.Msg)
}

// errCrowded says that too many queries wait already, and that who asked did not wait for one of them to end.
var errCrowded = errors.New("too many queries wait")

// serveBytes serves the message of a transport whose goroutine for it may wait: of HTTP, QUIC and gRPC. It begins in the wire lane. The error is
// that packet is no proper query, about which the transport tells the client in its own way; or errCrowded. packet is not kept.
func (s *Server) serveBytes(ctx context.Context, w queryWriter, packet []byte) error {
	if s.wire {
		if done, err := s.answerWire(ctx, w, packet); done {
			return err
		}
	}
	r, err := dnsutil.UnpackRequest(packet)
	if err != nil {
		return err
	}
	w.verify(packet, r)
	if !waiting().enter(ctx) {
		s.limited("waiting")
		return errCrowded
	}
	defer waiting().leave()
	s.ServeDNS(ctx, w, r)
	return nil
}

// answerWire answers packet in the wire lane, if it can be.
func (s *Server) answerWire(ctx context.Context, w queryWriter, packet []byte) (done bool, err error) {
	r := runs.Get().(*run)
	defer func() {
		r.deadline = time.Time{}
		runs.Put(r)
	}()
	r.deadline, _ = ctx.Deadline()
	peer := w.peer()
	peer.Arrival = time.Now()

	lane := enterLane()
	reply, out := r.serve(s, packet, peer, lane, nil)
	lane.Done(time.Since(peer.Arrival))
	lane.Leave()
	entered := false
	defer func() {
		if entered {
			waiting().leave()
		}
	}()
	var ended wire.Exchange
	for {
		switch {
		case out == wire.Done:
			if reply != nil {
				w.send(reply)
			}
			return true, nil
		case out == wire.Park && r.query.Awaited() != ended:
			ended = r.query.Awaited()
			parked.Add(1)
			var woken sleeper
			woken.Lock()
			ended.Then(&woken)
			woken.Lock()
			parked.Add(-1)
		case out == wire.Block && !entered:
			if !waiting().enter(ctx) {
				s.limited("waiting")
				return true, errCrowded
			}
			entered = true
		default:
			return false, nil
		}
		reply, out = r.serve(s, packet, peer, nil, ended)
	}
}

// sleeper is a goroutine that waits for an exchange.
type sleeper struct{ sync.Mutex }

// Resume implements wire.Resumer.
func (s *sleeper) Resume() { s.Unlock() }
