package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	"github.com/coredns/coredns/plugin/pkg/tls"
)

// This file is about upstreams of HTTPS that are asked with a client of net/http: one that was set, or, for those that
// lead queries to other places, one that follows them there.

const (
	redirectedFor = 5 * time.Minute // for which a client follows redirects, since the last one that a connection met
	maxRedirects  = 10              // that one query follows
	httpDialTime  = 5 * time.Second // for a connection of such a client, and again for its handshake
)

var errRedirect = errors.New("redirected too often, or to what is not HTTPS")

// webClient is such a client.
type webClient struct {
	given atomic.Pointer[http.Client] // was set; nil if none was

	mu  sync.Mutex
	own *http.Client // follows redirects; nil as long as there was none
}

// get is the client for queries to p.
func (w *webClient) get(p *Proxy) *http.Client {
	if given := w.given.Load(); given != nil {
		return given
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own == nil {
		w.own = p.followingClient()
	}
	return w.own
}

// closeIdle closes the connections without requests.
func (w *webClient) closeIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range []*http.Client{w.given.Load(), w.own} {
		if c != nil {
			c.CloseIdleConnections()
		}
	}
}

// byLibrary reports whether queries over HTTPS are asked with such a client.
func (p *Proxy) byLibrary() bool {
	at := p.redirected.Load()
	return at != 0 && p.engine.now() < at+int64(redirectedFor) || p.web.given.Load() != nil
}

// followingClient is a client made of the TLS settings.
func (p *Proxy) followingClient() *http.Client {
	conf := p.transport.conf.Load()
	t := tls.NewHTTPSTransport(namedTLS(conf.tls, p.hostPort).Clone())
	t.MaxConnsPerHost, t.TLSHandshakeTimeout = maxHTTPConns, httpDialTime
	t.Proxy = nil // queries that find proxies would have to pass them
	dialer := &net.Dialer{Timeout: httpDialTime, KeepAlive: 30 * time.Second, LocalAddr: conf.localAddr("tcp")}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		return nonblock.Conn(conn), err
	}
	return &http.Client{Transport: t, CheckRedirect: onlyHTTPS}
}

// onlyHTTPS is http.Client.CheckRedirect. In the clear anybody on the way could read the query, and answer it.
func onlyHTTPS(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != "https" || len(via) >= maxRedirects {
		return errRedirect
	}
	return nil
}

// fetch has c make the request for x's query, and returns the message of the response, whose body is in buf. got is
// told when there is a connection.
func (p *Proxy) fetch(ctx context.Context, c *http.Client, x *Exchange, buf *bytes.Buffer, got func(net.Addr)) ([]byte, error) {
	if got != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { got(i.Conn.LocalAddr()) }})
	}
	r := p.requestFor(x)
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(bytes.Clone(r.body)) // a request that fails may be read still
	}
	req, err := http.NewRequestWithContext(ctx, r.method, "https://"+p.hostPort+r.path, body)
	if err != nil {
		return nil, err
	}
	req.Host = r.host
	req.Header.Set("Accept", doh.MimeType)
	req.Header.Set("Content-Type", doh.MimeType) // with GET, too, as CoreDNS 1.14.7 has it
	req.Header["Idempotency-Key"] = nil          // for the library, which sends nothing: the request may be made again
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, maxHTTPSReply+1)); err != nil && resp.StatusCode == http.StatusOK {
		return nil, err
	}
	answer := responseOf(resp)
	answer.body = buf.Bytes()
	return answer.message(p.addr)
}
