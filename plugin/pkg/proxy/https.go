package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/tls"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// httpsPool is the goroutines that wait for the HTTP client: as many as queries are under way, each of them for
// many queries.
type httpsPool struct {
	jobs    chan *Exchange // as long as there may be workers
	idle    int
	workers int
}

const (
	maxHTTPS      = 1024
	idleHTTPS     = 10 * time.Second
	maxHTTPSReply = 64 << 10
)

var errTooLong = errors.New("doh: reply is longer than 64 KiB")

// askHTTPS gives x to a worker.
func (e *engine) askHTTPS(x *Exchange) {
	x.Proto = "tcp"
	p := &e.https
	e.mu.Lock()
	var err error
	switch {
	case e.stopped:
		err = errStopped
	case p.workers == maxHTTPS && p.idle == 0:
		err = ErrBusy
	}
	if err != nil {
		e.unlock()
		e.end(x, err)
		return
	}
	if p.jobs == nil {
		p.jobs = make(chan *Exchange, maxHTTPS)
	}
	ctx, cancel := context.WithCancelCause(e.ctx)
	x.cancel = cancel
	job := httpsJob{e, x, ctx}
	if p.idle > 0 {
		p.idle--
	} else {
		p.workers++
		e.running.Go(e.workHTTPS)
	}
	x.on = job
	p.jobs <- x
	e.unlock()
}

// workHTTPS asks, one query after the other, until there is nothing to do for a while.
func (e *engine) workHTTPS() {
	p := &e.https
	patience := time.NewTimer(idleHTTPS)
	defer patience.Stop()
	for {
		select {
		case x := <-p.jobs:
			e.mu.Lock()
			job := x.on.(httpsJob)
			e.unlock()
			job.run()
			patience.Reset(idleHTTPS)
		case <-patience.C:
			if e.leaveHTTPS() {
				return
			}
			patience.Reset(idleHTTPS)
		case <-e.ctx.Done():
			if e.leaveHTTPS() {
				return
			}
		}
	}
}

// leaveHTTPS takes an idle worker off the list. It reports false if a job was given to it just now.
func (e *engine) leaveHTTPS() bool {
	e.mu.Lock()
	defer e.unlock()
	if e.https.idle == 0 {
		return false
	}
	e.https.idle--
	e.https.workers--
	return true
}

// httpsJob is one exchange with an HTTPS upstream.
type httpsJob struct {
	engine *engine
	x      *Exchange
	ctx    context.Context
}

func (httpsJob) late(*Exchange) error  { return context.DeadlineExceeded } // never asked: the context has the deadline
func (httpsJob) drop(*Exchange, int64) {}

func (j httpsJob) run() {
	e, x := j.engine, j.x
	wait := min(int64(x.Timeout), x.deadline-e.now())
	ctx, cancel := context.WithTimeout(j.ctx, time.Duration(wait))
	defer cancel()
	var buf bytes.Buffer
	err := e.proxy.roundTrip(ctx, x, &buf)
	if cause := context.Cause(j.ctx); err != nil && cause != nil {
		err = cause
	}
	e.mu.Lock()
	x.cancel(nil)
	x.on, x.cancel = nil, nil
	e.https.idle++
	e.unlock()
	e.end(x, err)
}

// roundTrip asks x's query and reads the reply into buf.
func (p *Proxy) roundTrip(ctx context.Context, x *Exchange, buf *bytes.Buffer) error {
	x.Query[0], x.Query[1] = 0, 0 // so that HTTP caches may work (RFC 8484 §4.1)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		x.Local = i.Conn.LocalAddr()
	}})
	if err := p.fetch(ctx, p.doh.Load().method, x.Query, buf); err != nil {
		return err
	}
	b := buf.Bytes()
	in, v := inspect(b)
	if v == proper && !in.answers(b, x.Query) {
		v = otherQuestion
	}
	if v != proper {
		p.counts.ignored.get(v).Inc()
		return ErrMismatch
	}
	x.Reply, x.Facts = b, in.Facts
	return nil
}

// fetch makes the HTTP request (RFC 8484 §4) for query and reads the response's body into buf.
func (p *Proxy) fetch(ctx context.Context, method string, query []byte, buf *bytes.Buffer) error {
	target := "https://" + p.addr + doh.Path
	var body io.Reader
	if method == http.MethodGet {
		target += "?dns=" + base64.RawURLEncoding.EncodeToString(query)
	} else {
		body = bytes.NewReader(query)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return err
	}
	if host := p.doh.Load().host; host != "" {
		req.Host = host
	}
	req.Header.Set("Accept", doh.MimeType)
	if body != nil {
		req.Header.Set("Content-Type", doh.MimeType)
	}
	resp, err := p.httpClient().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		io.CopyN(io.Discard, resp.Body, maxHTTPSReply) // so that the connection can be used again
		return fmt.Errorf("doh: %s answered with status %d", p.addr, resp.StatusCode)
	}
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, maxHTTPSReply+1)); err != nil {
		return err
	}
	if buf.Len() > min(maxHTTPSReply, wire.MaxMessage) {
		return errTooLong
	}
	return nil
}

// httpClient is the client that was set, or one made of the TLS settings at first use.
func (p *Proxy) httpClient() *http.Client {
	if c := p.client.Load(); c != nil {
		return c
	}
	conf := p.transport.conf.Load()
	cfg := namedTLS(conf.tls, p.addr).Clone()
	t := tls.NewHTTPSTransport(cfg)
	t.Proxy = nil // queries that find proxies would have to pass them
	t.DialContext = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, LocalAddr: conf.localAddr("tcp")}).DialContext
	c := &http.Client{Transport: t}
	if !p.client.CompareAndSwap(nil, c) {
		return p.client.Load()
	}
	return c
}
