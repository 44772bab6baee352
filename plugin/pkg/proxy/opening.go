package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// This file has one request of a client open its connection, and the others wait for that. The library would have each
// open one, since it cannot know that a connection of HTTP/2 will do for all: many handshakes for a start, and in an
// outage so many that do not end that there is no room for one when it is over.

// opening is the opening of a client's connection.
type opening struct {
	since int64
	done  chan struct{} // closed when there is a connection, or the request has failed

	// Guarded by the lock of httpClients until done is closed.
	more int // requests that open one, too
	over bool
	err  error // of the request; nil if the next one is to try
}

// turn returns when a request may be made with c: there is a connection, or it is the one to open it, which opens
// tells. When that is not done after a second, the next one tries, too, for it may never be. The error is that of who
// tried in vain, or the end of ctx.
func (h *httpClients) turn(ctx context.Context, p *Proxy, c *httpClient) (opens *opening, err error) {
	for {
		now := p.engine.now()
		h.mu.Lock()
		o := c.opening
		switch {
		case c.connected || h.given != nil:
			h.mu.Unlock()
			return nil, nil
		case !c.opens(now):
			o = &opening{since: now, done: make(chan struct{})}
			c.opening = o
			h.mu.Unlock()
			return o, nil
		case o.more < maxAtOnce && c.refuses(now) && now >= c.dialled+int64(dialPause): // one will not do for all
			o.more++
			c.dialled = now
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

// secured notes which protocol a connection of c will speak, if err is nil.
func (h *httpClients) secured(c *httpClient, protocol string, err error) {
	if err == nil {
		h.mu.Lock()
		c.shared = protocol == "h2"
		h.mu.Unlock()
	}
}

// got notes that a request got a connection, for the first time or again.
func (h *httpClients) got(c *httpClient) {
	h.mu.Lock()
	c.connected, c.proven = true, true
	c.opened(c.opening, nil)
	h.mu.Unlock()
}

// sent notes that a request is sent, for the first time or again.
func (h *httpClients) sent(c *httpClient, now int64, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first {
		c.silence.Ask(now)
	} else if c.shared { // the library has made the request again
		c.refused = now
	}
}

// answered notes that c got an answer. If a connection has been opened for long meanwhile, the upstream may take no
// more of them, and there is another one. h.mu is held.
func (h *httpClients) answered(c *httpClient, now int64) {
	if o := c.opening; o != nil && now-o.since > int64(eventloop.LeastPatience) {
		c.connected = true
		c.opened(o, nil)
	}
}

// made notes that a request was made, which opened o if that is not nil, and ended now with err. ctx had its time.
// After an error there may be no connection any more.
func (h *httpClients) made(ctx context.Context, c *httpClient, o *opening, now int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil || errors.Is(err, errNoStream) || errors.Is(err, errNoneFree) {
		err = nil // it says nothing of the connection
	} else if err != nil {
		if c.connected = false; o != nil && !o.over && refusal(err) {
			c.shut = now + slowDial
		}
		if errors.Is(err, errNotTaken) && c.shared {
			c.refused = now
		}
	}
	c.opened(o, err)
}

// opened ends o, if there is one and it has not ended. The lock of httpClients is held.
func (c *httpClient) opened(o *opening, err error) {
	if o == nil || o.over {
		return
	}
	o.over, o.err = true, err
	close(o.done)
	if c.opening == o {
		c.opening = nil
	}
}

// opens reports whether a connection is about to be opened, which is not late. The lock of httpClients is held.
func (c *httpClient) opens(now int64) bool {
	return !c.connected && c.opening != nil && now-c.opening.since <= slowDial
}
