package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

const maxHTTPSReply = 64 << 10

var errTooLong = errors.New("doh: reply is longer than 64 KiB")

// roundTrip asks x's query and reads the reply into buf.
func (p *Proxy) roundTrip(ctx context.Context, x *Exchange, buf *bytes.Buffer) error {
	x.Query[0], x.Query[1] = 0, 0 // as HTTP caches need it and QUIC demands (RFC 8484 §4.1, RFC 9250 §4.2.1)
	err := p.carry(ctx, p.doh.Load().method, x.Query, buf, func(local net.Addr) { x.Local, x.sent = local, p.engine.now() })
	if err != nil {
		return err
	}
	b := buf.Bytes()
	in, v := inspect(b)
	switch {
	case p.protocol == transport.QUIC && in.id != 0:
		v = otherID
	case v == bare:
		b, v = in.completed(b, x.Query), proper
	case v == proper && !in.answers(b, x.Query):
		v = otherQuestion
	}
	if v != proper {
		p.counts.ignored.get(v).Inc()
		return ErrMismatch
	}
	x.Reply, x.Facts = b, in.Facts
	return nil
}

// carry asks query, whose id is 0, and reads the reply into buf. got is told when there is a connection for it.
func (p *Proxy) carry(ctx context.Context, method string, query []byte, buf *bytes.Buffer, got func(net.Addr)) error {
	if p.protocol == transport.QUIC {
		return p.engine.quic.ask(ctx, query, buf, got)
	}
	c, s := p.clients.take(p), sending{got: got}
	err := p.request(ctx, c, &s, method, query, buf)
	for t := (tries{}); err != nil && ctx.Err() == nil; {
		var other *httpClient
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
		err = p.request(ctx, c, &s, method, query, buf)
	}
	if err != nil && ctx.Err() == nil && s.at.Load() == 0 { // there is no connection
		if other := p.clients.instead(c); other != nil {
			p.put(ctx, c, 0, p.engine.now(), err)
			c = other
			buf.Reset()
			err = p.request(ctx, c, &s, method, query, buf)
		}
	}
	p.put(ctx, c, s.at.Load(), p.engine.now(), err)
	return err
}

// sending is what is known of how a request was sent.
type sending struct {
	got    func(net.Addr) // is told when there is a connection
	at     atomic.Int64   // when there was one, and a stream; 0 before
	reused atomic.Bool    // it was open before
}

// traced is ctx for a request of t that tells s.
func (p *Proxy) traced(ctx context.Context, t *takenTurn, s *sending) context.Context {
	streams := t.c.streams()
	t.sent = func() {
		now := p.engine.now()
		p.clients.sent(t.c, now, s.at.Swap(now) == 0)
	}
	return httptrace.WithClientTrace(context.WithValue(ctx, turnKey{}, t), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		t.had.Store(true)
		p.clients.got(t.c)
		if !streams {
			t.sent()
		}
		s.reused.Store(i.Reused)
		s.got(i.Conn.LocalAddr())
	}, TLSHandshakeDone: func(s tls.ConnectionState, err error) {
		p.clients.secured(t.c, s.NegotiatedProtocol, err)
	}})
}

// request makes the request with c when it is its turn.
func (p *Proxy) request(ctx context.Context, c *httpClient, s *sending, method string, query []byte, buf *bytes.Buffer) error {
	o, err := p.clients.turn(ctx, p, c)
	if err != nil {
		return err
	}
	t := &takenTurn{c: c, opens: o}
	err = c.fetch(p.traced(ctx, t, s), p, method, query, buf)
	if errors.Is(err, errNoneFree) && t.had.Load() { // GET, which the library makes again: its connection ended
		err = errNotTaken
	}
	p.clients.made(ctx, c, o, p.engine.now(), err)
	return err
}

// fetch makes the HTTP request (RFC 8484 §4) for query and reads the response's body into buf.
func (c *httpClient) fetch(ctx context.Context, p *Proxy, method string, query []byte, buf *bytes.Buffer) error {
	target := "https://" + p.hostPort + p.path
	var body io.Reader
	if method == http.MethodGet {
		target += "?dns=" + base64.RawURLEncoding.EncodeToString(query)
	} else {
		body = bytes.NewReader(bytes.Clone(query)) // a request that fails may be read still
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return err
	}
	if host := p.doh.Load().host; host != "" {
		req.Host = host
	}
	req.Header.Set("Accept", doh.MimeType)
	req.Header.Set("Content-Type", doh.MimeType) // with GET, too, as CoreDNS 1.14.7 has it
	req.Header["Idempotency-Key"] = nil          // for the library, which sends nothing: the request may be made again
	resp, err := c.Do(req)
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
	// The page of a portal on the way, say. A reply counts, whatever it is called.
	if what := resp.Header.Get("Content-Type"); strings.HasPrefix(what, "text/") {
		if _, v := inspect(buf.Bytes()); v > bare {
			return fmt.Errorf("doh: %s answered with %.60s", p.addr, what)
		}
	}
	if age := ageOf(resp.Header); age > 0 {
		older(buf.Bytes(), age)
	}
	return nil
}

// ageOf is for how many seconds caches of HTTP have had a response; 0 if none says so. Of several ages the first one
// counts (RFC 9111 §5.1), and for one that is too large the largest.
func ageOf(h http.Header) uint32 {
	first, _, _ := strings.Cut(h.Get("Age"), ",")
	age, _ := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	return uint32(age)
}

// older takes the seconds for which caches of HTTP have had the message b from its TTLs (RFC 8484 §5.1).
func older(b []byte, age uint32) {
	in, v := inspect(b)
	if v != proper {
		return
	}
	left := wire.EffortOf(len(b))
	eachRecord(b, in.qend, &left, func(_, at int, _ bool) bool {
		if ttl := b[at+4 : at+8]; binary.BigEndian.Uint16(b[at:]) != wire.TypeOPT {
			binary.BigEndian.PutUint32(ttl, max(binary.BigEndian.Uint32(ttl), age)-age)
		}
		return true
	})
}
