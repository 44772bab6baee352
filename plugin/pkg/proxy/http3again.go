package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// This file makes requests over HTTP/3, also again where their connection has ended, or has no stream for them.

// tryPause is before each further try but the first one.
const tryPause = 10 * time.Millisecond

// carryHTTP3 is carry over HTTP/3.
func (p *Proxy) carryHTTP3(ctx context.Context, x *Exchange, buf *bytes.Buffer, got func(net.Addr)) ([]byte, error) {
	c, s := p.clients.take(p), sending{got: got}
	b, err := p.request(ctx, c, &s, x, buf)
	for t := (tries{}); err != nil && ctx.Err() == nil; {
		var other *http3Client
		if errors.Is(err, errNoStream) {
			other = p.clients.elsewhere(p, c, t.moved)
			t.moved = true
		} else if other = p.clients.surplus(c, p.engine.now()); other == nil && !t.again(ctx, p, c, &s, err) {
			break
		}
		if other != nil {
			p.put(ctx, c, s.at.Swap(0), p.engine.now(), err)
			c = other
		}
		buf.Reset()
		b, err = p.request(ctx, c, &s, x, buf)
	}
	if err != nil && ctx.Err() == nil && s.at.Load() == 0 { // there is no connection
		if other := p.clients.instead(c); other != nil {
			p.put(ctx, c, 0, p.engine.now(), err)
			c = other
			buf.Reset()
			b, err = p.request(ctx, c, &s, x, buf)
		}
	}
	p.put(ctx, c, s.at.Load(), p.engine.now(), err)
	return b, err
}

// sending is what is known of how a request was sent.
type sending struct {
	got    func(net.Addr) // is told when there is a connection
	at     atomic.Int64   // when there was one, and a stream; 0 before
	reused atomic.Bool    // it was open before
}

// turnKey is the key of context for the turn that a request has.
type turnKey struct{}

// takenTurn is a request of c.
type takenTurn struct {
	c     *http3Client
	sent  func() // is to be called when it has all that it needs to be sent
	wrote bool   // its header was written
}

// traced is ctx for a request of t that tells s.
func (p *Proxy) traced(ctx context.Context, t *takenTurn, s *sending) context.Context {
	t.sent = func() {
		if now := p.engine.now(); s.at.Swap(now) == 0 {
			p.clients.sent(t.c, now)
		}
	}
	return httptrace.WithClientTrace(context.WithValue(ctx, turnKey{}, t), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		p.clients.got(t.c)
		s.reused.Store(i.Reused)
		s.got(i.Conn.LocalAddr())
	}})
}

// request makes the request with c when it is its turn.
func (p *Proxy) request(ctx context.Context, c *http3Client, s *sending, x *Exchange, buf *bytes.Buffer) ([]byte, error) {
	o, err := p.clients.turn(ctx, p, c)
	if err != nil {
		return nil, err
	}
	b, err := p.fetch(p.traced(ctx, &takenTurn{c: c}, s), c.Client, x, buf, nil)
	p.clients.made(ctx, c, o, p.engine.now(), err)
	return b, err
}

// tries are those of one query.
type tries struct {
	ended int  // after connections that ended without a word of the request
	moved bool // to another client than the first one
}

// again reports whether the request that failed with err is to be made again, and waits for when. Connections that the
// upstream closed, or knows no more, cost few more tries only: the query may be what closed them.
func (t *tries) again(ctx context.Context, p *Proxy, c *http3Client, s *sending, err error) bool {
	if t.ended == maxRetries || !p.ended(c, s, err, t.ended == 0) {
		return false
	}
	t.ended++
	return t.ended == 1 || pause(ctx)
}

// ended reports whether err, of a request of c that was sent as s tells, is the end of its connection, which is none of
// the request's own. It may be at first.
func (p *Proxy) ended(c *http3Client, s *sending, err error, first bool) bool {
	return closedHTTP(err) && (first || s.reused.Load() || p.clients.answers(c))
}

// answers reports whether requests of c were answered. If so, the end of a connection that was opened for one is most
// likely none of its own.
func (h *http3Clients) answers(c *http3Client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.heard > c.born
}

// pause waits before a request is made again, and reports whether it still has time.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(tryPause):
		return true
	case <-ctx.Done():
		return false
	}
}
