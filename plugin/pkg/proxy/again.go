package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// This file is about requests that an upstream does not take, as its connection has had as many as it may have, or
// is closed just now. Servers of HTTP/2 say so (RFC 9113 §6.8, §8.7); then a request may be made again at once, and as
// many wait for the next connection as were under way, it may have to be, several times over.

const (
	maxTries = 100                   // of a request that is not taken, on one connection after the other
	tryPause = 10 * time.Millisecond // before each try but the first two

	dialPause = 20 * time.Millisecond // between openings of connections, where each takes few requests
	maxAtOnce = 8                     // of these, for those who wait for one
)

// errNotTaken means that a request can be made again as if it had not been made.
var errNotTaken = errors.New("doh: the connection took no more requests")

// errNoneFree means that a request found no connection, and is not the one to open another one.
var errNoneFree = errors.New("doh: no connection is free")

// tries are those of one query.
type tries struct {
	n     int
	ended int  // after connections that ended without a word of the request
	moved bool // to another client than the first one
}

// again reports whether the request that failed with err is to be made again, and waits for when. Connections that the
// upstream closed, or knows no more, cost few more tries only: the query may be what closed them.
func (t *tries) again(ctx context.Context, p *Proxy, c *httpClient, s *sending, err error) bool {
	if errors.Is(err, errNoneFree) { // the context ends it
		return pause(ctx)
	}
	if t.n == maxTries {
		return false
	}
	taken := !errors.Is(err, errNotTaken)
	switch {
	case !taken && p.clients.share(c):
	case t.ended == maxRetries || taken && !p.ended(c, s, err, t.ended == 0):
		return false
	default:
		t.ended++
	}
	t.n++
	return t.n == 1 || pause(ctx)
}

// endedByPeer is closedByPeer for a connection of the library, which has one error for all requests that are under way
// when one of them cannot be written any more. It has no name for that error.
func endedByPeer(err error) bool {
	return closedByPeer(err) || strings.HasSuffix(err.Error(), "client connection force closed via ClientConn.Close")
}

// ended reports whether err, of a request of c that was sent as s tells, is the end of its connection, which is none of
// the request's own. Over HTTP/3 it may be at first.
func (p *Proxy) ended(c *httpClient, s *sending, err error, first bool) bool {
	known := s.reused.Load() || p.clients.answers(c)
	if p.protocol == transport.HTTPS3 {
		return closedHTTP(err) && (known || first)
	}
	return endedByPeer(err) && known
}

// answers reports whether requests of c were answered. If so, the end of a connection that was opened for one is most
// likely none of its own.
func (h *httpClients) answers(c *httpClient) bool {
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

// onceTransport gives a request back with errNotTaken where the library would make it again over HTTP/2: from the
// second time on it would wait for seconds before it does.
type onceTransport struct {
	under *http.Transport
	of    *httpClients
}

// CloseIdleConnections is for http.Client.
func (t onceTransport) CloseIdleConnections() { t.under.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (t onceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	its, ok := r.Context().Value(turnKey{}).(*takenTurn)
	if !ok || r.GetBody == nil {
		return t.under.RoundTrip(r)
	}
	once := *r
	once.GetBody = func() (io.ReadCloser, error) {
		if t.of.share(its.c) {
			return nil, errNotTaken
		}
		return r.GetBody()
	}
	return t.under.RoundTrip(&once)
}

// share reports whether requests share a connection of c.
func (h *httpClients) share(c *httpClient) bool {
	h.mu.Lock()
	shared := c.shared
	h.mu.Unlock()
	return shared
}

// turnKey is the key of context for the turn that a request has.
type turnKey struct{}

// takenTurn is a request of c.
type takenTurn struct {
	c     *httpClient
	opens *opening    // of the connection, which the request does; nil if it is to find one
	sent  func()      // is to be called when it has all that it needs to be sent
	had   atomic.Bool // a connection, which may not have taken it
	wrote bool        // its header was written; over HTTP/3 only
}

// mayDial reports whether a connection may be opened for a request, whose context it is. Where the connections
// take few requests each, those which find theirs at its end would open one each; they go back and look for one, but
// one in a while may open it: there may be none.
func (h *httpClients) mayDial(ctx context.Context, now int64) bool {
	t, ok := ctx.Value(turnKey{}).(*takenTurn)
	if !ok {
		return true
	}
	h.mu.Lock()
	may := t.opens != nil || !t.c.refuses(now) || now >= t.c.dialled+int64(dialPause)
	if may {
		t.c.dialled = now
	}
	h.mu.Unlock()
	return may
}

// refuses reports whether a request was not taken a moment ago. The lock of httpClients is held.
func (c *httpClient) refuses(now int64) bool { return c.refused != 0 && now < c.refused+slowDial }
