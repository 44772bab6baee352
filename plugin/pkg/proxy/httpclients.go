package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	"github.com/coredns/coredns/plugin/pkg/tls"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// httpClients are the clients of an upstream of HTTPS. A client keeps its connection however long nothing comes
// on it, so one whose connection is dead, or is too old, is left for a new one. While it is not sure that it is
// dead, there is a second client for what else there is to ask. Over HTTP/3 there are more while requests wait for
// streams (http3streams.go).
type httpClients struct {
	mu    sync.Mutex
	given *http.Client  // the only one, if it is set
	live  []*httpClient // those that take requests, at most maxLive, the oldest first
}

// maxLive is how many clients, or connections of QUIC, an upstream has: a second one while the first one is silent.
const maxLive = 2

const (
	// maxHTTPConns is how many connections a client opens: one of HTTP/2 takes all requests, one of HTTP/1.1 a single
	// one. Where none comes about, each query would open another one, and leave it pending when its time is over.
	maxHTTPConns = 128
	httpDialTime = 5 * time.Second // for a connection, and again for its handshake
)

// httpClient is one client, with the connections that it has opened.
type httpClient struct {
	*http.Client
	born int64

	// Guarded by the lock of httpClients.
	users     int               // requests
	waiting   int               // those that have a connection, and no stream of it yet
	heard     int64             // when a response came
	silence   eventloop.Silence // of those that have a connection
	connected bool              // as far as is known
	proven    bool              // it was connected once
	opening   *opening          // of a connection; nil if none is under way
	shared    bool              // its connections take many requests at one time each: they are of HTTP/2
	refused   int64             // when a request was not taken
	dialled   int64             // when the opening of a connection began
	shut      int64             // until when it is a last resort, as its connection was refused
	retired   bool              // takes no more requests, and is closed with the last one
}

// set makes c the only client.
func (h *httpClients) set(c *http.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.given = c
	for len(h.live) > 0 {
		h.retire(h.live[0])
	}
}

// take is a client with one user more.
func (h *httpClients) take(p *Proxy) *httpClient {
	now := p.engine.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.choose(p, now)
	if c == nil {
		c = &httpClient{Client: h.given, born: now, heard: now}
		if h.given == nil {
			c.Client = p.newHTTPClient()
		}
		h.live = append(h.live, c)
	}
	h.join(c, now)
	return c
}

// choose is the client for one more request, nil if there should be another one: the oldest that is not silent, of
// those where fewest wait. While another one has its first connection opened, requests go on to the others. h.mu is
// held.
func (h *httpClients) choose(p *Proxy, now int64) (c *httpClient) {
	conf, patience := p.transport.conf.Load(), p.engine.usual.Patience()
	var last *httpClient // if there is no better one
	for i := len(h.live) - 1; i >= 0; i-- {
		l := h.live[i]
		silent := l.silence.Longer(patience, now)
		if h.given == nil && (conf.aged(l.born, now) || silent && l.users == 0) {
			h.retire(l)
			continue
		}
		if h.given != nil || !silent && (len(h.live) == 1 || now >= l.shut && (l.proven || !l.opens(now))) {
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
func (h *httpClients) instead(c *httpClient) *httpClient {
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
func (p *Proxy) put(ctx context.Context, c *httpClient, sent, now int64, err error) {
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
	case sent > 0 && h.given == nil && p.silent(context.Cause(ctx), c.heard, sent, now):
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
func (h *httpClients) retire(c *httpClient) {
	c.retired = true
	h.live = without(h.live, c)
	if c.users == 0 {
		c.CloseIdleConnections()
	}
}

// closeIdle closes the connections without requests.
func (h *httpClients) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.given != nil {
		h.given.CloseIdleConnections()
	}
	for _, c := range h.live {
		c.CloseIdleConnections()
	}
}

// newHTTPClient is a client made of the TLS settings.
func (p *Proxy) newHTTPClient() *http.Client {
	conf := p.transport.conf.Load()
	cfg := namedTLS(conf.tls, p.hostPort).Clone()
	if p.protocol == transport.HTTPS3 {
		return p.http3Client(cfg)
	}
	t := tls.NewHTTPSTransport(cfg)
	t.MaxConnsPerHost, t.TLSHandshakeTimeout = maxHTTPConns, httpDialTime
	t.Proxy = nil // queries that find proxies would have to pass them
	dialer := &net.Dialer{Timeout: httpDialTime, KeepAlive: 30 * time.Second, LocalAddr: conf.localAddr("tcp")}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !p.clients.mayDial(ctx, p.engine.now()) {
			return nil, errNoneFree
		}
		conn, err := dialer.DialContext(ctx, network, addr)
		return nonblock.Conn(conn), err
	}
	return &http.Client{Transport: onceTransport{t, &p.clients}, CheckRedirect: onlyHTTPS}
}

// maxRedirects is how many redirects one query follows.
const maxRedirects = 10

// onlyHTTPS is http.Client.CheckRedirect. In the clear anybody on the way could read the query, and answer it.
func onlyHTTPS(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != "https" || len(via) >= maxRedirects {
		return errRedirect
	}
	return nil
}

var errRedirect = errors.New("redirected too often, or to what is not HTTPS")
