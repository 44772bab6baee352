package dnsserver

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// responder is the writer of a query in the message lane.
func (c *streamConn) responder() *responder {
	return &responder{
		out: c, server: c.transport.server, network: "tcp", remote: c.conn.RemoteAddr(), local: c.conn.LocalAddr(), limit: wire.MaxMessage, tls: c.state,
	}
}

// serveMessage serves a query in the message lane, on a worker.
func (c *streamConn) serveMessage(packet []byte) {
	c.base().serveTimed(context.Background(), c.responder(), packet)
}

// message serves packet in the message lane, or lets it wait. It reports false if another goroutine leads.
func (c *streamConn) message(packet []byte) (leads bool) {
	s := c.base()
	if !s.tempo.quick.Load() {
		c.wait(packet, nil, wire.Unpack)
		return true
	}
	c.beginCalls()
	w := c.responder()
	began := sinceStart()
	r := s.receive(w, packet)
	if r == nil {
		return true
	}
	if !c.turn.call(c, w, r) {
		return false
	}
	s.tempo.add(gain(time.Duration(sinceStart() - began)))
	return true
}

// beginCalls is called before handlers are, until endCalls, which is called before the connection is read again, or waits for anything else.
func (c *streamConn) beginCalls() {
	if c.over == nil {
		c.over = make(chan struct{})
	}
	if !c.calling {
		c.calling = true
		c.out.collect(true)
	}
}

func (c *streamConn) endCalls() {
	if c.calling {
		c.calling = false
		theRelief.dismiss(&c.turn)
		c.out.collect(false)
	}
}

// waits implements leader.
func (c *streamConn) waits() bool {
	select {
	case c.slots <- struct{}{}:
		c.begin()
		return true
	default:
		c.out.release() // what the handler has written, or those before it, would wait for it
		return false
	}
}

// waited implements leader.
func (c *streamConn) waited() { c.end() }

// leadOn implements leader.
func (c *streamConn) leadOn() {
	go func() {
		if c.lead() {
			close(c.over)
		}
	}()
}
