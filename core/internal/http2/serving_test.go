package http2

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// site is what is told of requests in a test. What it does with one says its path:
//
//	/dns-query, and whatever else  the body comes back
//	/N                             N octets
//	/head                          the length of three octets
//	/later                         as /dns-query, when the site is opened; it ends with its context
//	/stubborn                      the same, but it does not end
type site struct {
	maxBody int
	later   chan struct{} // closed when those that wait are to be answered
	waiting chan *Request // gets one for each that waits
	ended   chan error    // gets why the context of one that waits has ended

	look func(*visit, *Request) // is shown all that come, if not nil; set between requests

	mu   sync.Mutex
	seen []string // methods and paths
}

func newSite() *site {
	return &site{
		maxBody: wire.MaxMessage, later: make(chan struct{}), waiting: make(chan *Request, 1000), ended: make(chan error, 1000),
	}
}

// protocol is one connection of a site.
type protocol struct {
	*Conn
	site *site
}

func (p protocol) Serve() { p.Conn.Serve(p.handler()) }

func (p protocol) handler() *visit { return &visit{p.Conn, p.site} }

// visit implements Handler.
type visit struct {
	*Conn
	site *site
}

func (v *visit) BeforeWait() {}

func (v *visit) MaxBody() int { return v.site.maxBody }

func (v *visit) Refuse(why Refusal) Response {
	reason := map[Refusal]string{LongHeader: "long header", LongBody: "long body"}[why]
	return Response{Status: http.StatusBadRequest, ContentType: "text/plain", MaxAge: -1, Body: []byte(reason)}
}

func (v *visit) Serve(r *Request) (Response, bool) {
	v.site.mu.Lock()
	v.site.seen = append(v.site.seen, r.Method+" "+r.Path)
	v.site.mu.Unlock()
	if v.site.look != nil {
		v.site.look(v, r)
	}
	resp := Response{Status: http.StatusOK, ContentType: "text/plain", MaxAge: 60, Body: r.Body}
	path := strings.TrimPrefix(r.Path, "/")
	if n, err := strconv.ParseUint(path, 10, 20); err == nil {
		resp.Body = []byte(strings.Repeat("x", int(n)))
	}
	switch path {
	case "head":
		resp.Body, resp.NoBody = []byte("abc"), true
	case "later", "stubborn":
		resp.Body = append([]byte(nil), r.Body...)
		v.wait(v.Defer(r), resp)
		return Response{}, false
	}
	return resp, true
}

// wait answers r when the site is opened, or its context ends.
func (v *visit) wait(r Request, resp Response) {
	s := v.Serving()
	v.Begin(s)
	ctx, cancel := v.Context(r.ID)
	v.site.waiting <- &r
	go func() {
		defer v.End(s)
		defer v.Forget(&r)
		defer cancel()
		done := ctx.Done()
		if r.Path == "/stubborn" {
			done = nil
		}
		select {
		case <-v.site.later:
		case <-done:
			v.site.ended <- context.Cause(ctx)
			return
		}
		v.Reply(r.ID, resp, r.ID%4 == 1)
	}()
}

// served is a site at work.
type served struct {
	*service.Service
	*site
	addr string
	end  func() error
}

// serve serves a site on loopback. change may change its Service.
func serve(t testing.TB, of *site, change func(*service.Service)) *served {
	t.Helper()
	s := coretest.Service(t, coretest.Label(t))
	s.HeaderBytes, s.Streams = 96<<10, 250
	if change != nil {
		change(s)
	}
	config := coretest.Certificate(t, "h2")
	from := coretest.ListenTCP(t)
	l := conn.NewListener(s, conn.ClientAuthOf(config))
	l.ListenOn(from)
	handler := conn.Handler{TLS: config, New: func(c *conn.Conn) conn.Protocol { return protocol{New(c), of} }}
	end := coretest.Serving(t, l, func() error { return l.Serve(from, handler) })
	return &served{s, of, from.Addr().String(), end}
}

// waits waits until n requests wait for their answers.
func (s *site) waits(n int) {
	for range n {
		<-s.waiting
	}
}

// getting are the fields of a request without a body.
func getting(path string) []string {
	return []string{":method", "GET", ":scheme", "https", ":authority", "localhost", ":path", path}
}

// posting are those of one with a body.
func posting(path string) []string {
	return []string{":method", "POST", ":scheme", "https", ":authority", "localhost", ":path", path}
}

// post sends a request with a body.
func post(p *coretest.H2, id uint32, path, body string) {
	p.Open(id, false, posting(path)...)
	p.Framer.WriteData(id, true, []byte(body))
}

// answered reads a response with status 200.
func answered(p *coretest.H2) string {
	p.Helper()
	id, status, body := p.Reply()
	if status != "200" {
		return fmt.Sprintf("%d: status %s, %s", id, status, body)
	}
	return fmt.Sprintf("%d: %s", id, body)
}

// resetWith reports whether f ends stream id with that code.
func resetWith(f http2.Frame, id uint32, code http2.ErrCode) bool {
	r, ok := f.(*http2.RSTStreamFrame)
	return ok && r.StreamID == id && r.ErrCode == code
}
