package proxy

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// http3Clients are the clients of an upstream of HTTP/3. A client keeps its connection however long nothing comes
// on it, so one whose connection is dead, or is too old, is left for a new one. While it is not sure that it is
// dead, there is a second client for what else there is to ask. There are more while requests wait for streams
// (http3streams.go).
type http3Clients struct {
	mu   sync.Mutex
	live []*http3Client // those that take requests, at most maxLive, the oldest first
}

// maxLive is how many clients, or connections of QUIC, an upstream has: a second one while the first one is silent.
const maxLive = 2

// http3Client is one client, with the connection that it has opened.
type http3Client struct {
	*http.Client
	born int64

	// Guarded by the lock of http3Clients.
	users     int               // requests
	waiting   int               // those that have a connection, and no stream of it yet
	heard     int64             // when a response came
	silence   eventloop.Silence // of those that have a connection
	connected bool              // as far as is known
	proven    bool              // it was connected once
	opening   *opening          // of a connection; nil if none is under way
	shut      int64             // until when it is a last resort, as its connection was refused
	retired   bool              // takes no more requests, and is closed with the last one
}

// take is a client with one user more.
func (h *http3Clients) take(p *Proxy) *http3Client {
	now := p.engine.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.choose(p, now)
	if c == nil {
		c = &http3Client{Client: p.http3Client(), born: now, heard: now}
		h.live = append(h.live, c)
	}
	h.join(c, now)
	return c
}

// choose is the client for one more request, nil if there should be another one: the oldest that is not silent, of
// those where fewest wait. While another one has its first connection opened, requests go on to the others. h.mu is
// held.
func (h *http3Clients) choose(p *Proxy, now int64) (c *http3Client) {
	conf, patience := p.transport.conf.Load(), p.engine.usual.Patience()
	var last *http3Client // if there is no better one
	for i := len(h.live) - 1; i >= 0; i-- {
		l := h.live[i]
		silent := l.silence.Longer(patience, now)
		if conf.aged(l.born, now) || silent && l.users == 0 {
			h.retire(l)
			continue
		}
		if !silent && (len(h.live) == 1 || now >= l.shut && (l.proven || !l.opens(now))) {
			if c == nil || l.waiting <= c.waiting {
				c = l
			}
		}
		if last == nil || !last.proven || now < last.shut {
			last = l
		}
	}
	if c == nil && len(h.live) >= maxLive {
		c = last
	}
	return c
}

// instead is another client than c that has a connection, with one user more, nil if there is none.
func (h *http3Clients) instead(c *http3Client) *http3Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.live {
		if l != c && l.connected {
			l.users++
			return l
		}
	}
	return nil
}

// put gives c back, whose request got a connection at the time sent, 0 for none, and ended now with err. ctx
// had its time.
func (p *Proxy) put(ctx context.Context, c *http3Client, sent, now int64, err error) {
	h := &p.clients
	h.mu.Lock()
	defer h.mu.Unlock()
	if sent > 0 {
		c.silence.Done(sent, now, p.engine.usual.Patience())
		if err == nil || ctx.Err() == nil {
			c.silence.Heard(now)
		}
	}
	switch {
	case err == nil:
		c.heard = now
		h.answered(c, now)
	case sent > 0 && p.silent(context.Cause(ctx), c.heard, sent, now):
		h.retire(c)
	}
	if c.users--; c.users == 0 {
		c.connected = false // while it is idle it may be closed
	}
	if c.users == 0 && c.retired {
		c.CloseIdleConnections()
	}
}

// without is all but one of them, in the same memory, which keeps nothing of it.
func without[T any](all []*T, one *T) []*T {
	if i := slices.Index(all, one); i >= 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}

// retire lets c take no more requests. h.mu is held.
func (h *http3Clients) retire(c *http3Client) {
	c.retired = true
	h.live = without(h.live, c)
	if c.users == 0 {
		c.CloseIdleConnections()
	}
}

// closeIdle closes the connections without requests.
func (h *http3Clients) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.live {
		c.CloseIdleConnections()
	}
}
