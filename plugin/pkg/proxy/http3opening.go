package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// This file has one request of a client open its connection, and the others wait for that. Those that wait learn why
// there is none.

// opening is the opening of a client's connection.
type opening struct {
	since int64
	done  chan struct{} // closed when there is a connection, or the request has failed

	// Guarded by the lock of http3Clients until done is closed.
	over bool
	err  error // of the request; nil if the next one is to try
}

// turn returns when a request may be made with c: there is a connection, or it is the one to open it, which opens
// tells. When that is not done after a second, the next one tries, too, for it may never be. The error is that of who
// tried in vain, or the end of ctx.
func (h *http3Clients) turn(ctx context.Context, p *Proxy, c *http3Client) (opens *opening, err error) {
	for {
		now := p.engine.now()
		h.mu.Lock()
		o := c.opening
		switch {
		case c.connected:
			h.mu.Unlock()
			return nil, nil
		case !c.opens(now):
			o = &opening{since: now, done: make(chan struct{})}
			c.opening = o
			h.mu.Unlock()
			return o, nil
		}
		h.mu.Unlock()
		// The upstream may have refused the connection, which holds for all who wait. If who opened it only had no more
		// time, err is nil, and the next one takes its turn.
		timer := time.NewTimer(time.Duration(slowDial - (now - o.since)))
		select {
		case <-o.done:
			err = o.err
		case <-timer.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if timer.Stop(); err != nil {
			return nil, err
		}
	}
}

// got notes that a request got a connection, for the first time or again.
func (h *http3Clients) got(c *http3Client) {
	h.mu.Lock()
	c.connected, c.proven = true, true
	c.opened(c.opening, nil)
	h.mu.Unlock()
}

// sent notes that a request is sent.
func (h *http3Clients) sent(c *http3Client, now int64) {
	h.mu.Lock()
	c.silence.Ask(now)
	h.mu.Unlock()
}

// answered notes that c got an answer. If a connection has been opened for long meanwhile, the upstream may take no
// more of them, and there is another one. h.mu is held.
func (h *http3Clients) answered(c *http3Client, now int64) {
	if o := c.opening; o != nil && now-o.since > int64(eventloop.LeastPatience) {
		c.connected = true
		c.opened(o, nil)
	}
}

// made notes that a request was made, which opened o if that is not nil, and ended now with err. ctx had its time.
// After an error there may be no connection any more.
func (h *http3Clients) made(ctx context.Context, c *http3Client, o *opening, now int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil || errors.Is(err, errNoStream) {
		err = nil // it says nothing of the connection
	} else if err != nil {
		if c.connected = false; o != nil && !o.over && refusal(err) {
			c.shut = now + slowDial
		}
	}
	c.opened(o, err)
}

// opened ends o, if there is one and it has not ended. The lock of http3Clients is held.
func (c *http3Client) opened(o *opening, err error) {
	if o == nil || o.over {
		return
	}
	o.over, o.err = true, err
	close(o.done)
	if c.opening == o {
		c.opening = nil
	}
}

// opens reports whether a connection is about to be opened, which is not late. The lock of http3Clients is held.
func (c *http3Client) opens(now int64) bool {
	return !c.connected && c.opening != nil && now-c.opening.since <= slowDial
}
