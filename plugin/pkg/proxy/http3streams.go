package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// This file is about upstreams of HTTP/3 that take few streams of a connection at one time (RFC 9000 §4.6). The library
// has requests wait for one, so those that do for long are made with another client; see quicstreams.go.

// errNoStream means that a request has waited in vain for a stream, and was not sent.
var errNoStream = errors.New("doh: no stream of the connection is free")

// streamTransport gives up a request that waits for a stream so long that queries begin to give way to others.
type streamTransport struct {
	under interface {
		http.RoundTripper
		CloseIdleConnections()
	}
	of *http3Clients
}

// CloseIdleConnections is for http.Client.
func (t streamTransport) CloseIdleConnections() { t.under.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (t streamTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	its, ok := r.Context().Value(turnKey{}).(*takenTurn)
	if !ok {
		return t.under.RoundTrip(r)
	}
	its.wrote = false
	ctx, cancel := context.WithCancelCause(r.Context()) // its parent ends with the query
	w := &streamWait{of: t.of, c: its.c}
	w.late = time.AfterFunc(time.Hour, func() {
		if w.over() {
			cancel(errNoStream)
		}
	})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { w.begin() },
		WroteHeaders: func() {
			its.wrote = true
			if w.over() {
				its.sent()
			}
		},
	})
	resp, err := t.under.RoundTrip(r.WithContext(ctx))
	if w.over(); err != nil && errors.Is(context.Cause(ctx), errNoStream) {
		err = errNoStream
	}
	return resp, err
}

// streamWait is a request that waits for a stream of c.
type streamWait struct {
	of   *http3Clients
	c    *http3Client
	late *time.Timer
	has  bool // the lock of the clients guards it
}

// begin begins the wait.
func (w *streamWait) begin() {
	w.of.mu.Lock()
	if !w.has {
		w.has = true
		w.c.waiting++
		w.late.Reset(eventloop.LeastPatience)
	}
	w.of.mu.Unlock()
}

// over ends the wait, and reports whether it had not ended before.
func (w *streamWait) over() bool {
	w.of.mu.Lock()
	had := w.has
	if had {
		w.has = false
		w.c.waiting--
	}
	w.late.Stop() // also where the wait has not begun: it would stay for an hour
	w.of.mu.Unlock()
	return had
}

// elsewhere is where a request goes that has waited for a stream of c, with one user more: to another client, where
// fewest wait. If it has been elsewhere, or some wait everywhere, there is one client more, unless the upstream is
// silent.
func (h *http3Clients) elsewhere(p *Proxy, c *http3Client, again bool) *http3Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, patience := p.engine.now(), p.engine.usual.Patience()/2 // of a silence that began no earlier than the wait
	to, more, answers := c, len(h.live) < maxQUICLinks, false
	for _, l := range h.live {
		if now < l.shut { // and may be one too many
			more = false
			continue
		}
		if l.silence.Longer(patience, now) {
			continue
		}
		if answers = true; to == c || l != c && l.waiting <= to.waiting {
			to = l
		}
	}
	if more && answers && (again || to == c || to.waiting > 0) {
		to = &http3Client{Client: p.http3Client(), born: now, heard: now}
		h.live = append(h.live, to)
	}
	h.join(to, now)
	return to
}

// join makes a request one of c. If c has no connection, and never had an answer, it gets no other one for a moment:
// it may be one more than the upstream takes. h.mu is held.
func (h *http3Clients) join(c *http3Client, now int64) {
	if c.users++; len(h.live) > 1 && !c.connected && c.heard == c.born {
		c.shut = now + int64(eventloop.LeastPatience)
	}
}

// surplus is another client than c, with one user more, if c never had an answer, a request of it has failed, and the
// other one has a connection; else nil. Then c is one more than the upstream takes, and a last resort for a while.
func (h *http3Clients) surplus(c *http3Client, now int64) (other *http3Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.heard > c.born {
		return nil
	}
	for _, l := range h.live {
		if l != c && l.connected && now >= l.shut && (other == nil || l.waiting < other.waiting) {
			other = l
		}
	}
	if other != nil {
		c.shut = now + slowDial
		h.join(other, now)
	}
	return other
}
