package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

const maxHTTPSReply = 64 << 10

var errTooLong = errors.New("doh: reply is longer than 64 KiB")

// httpRequest is the request for a query (RFC 8484 §4.1).
type httpRequest struct {
	method, host, path string
	body               []byte // nil with GET
}

// requestFor is the request for x's query. Health checks are made with POST.
func (p *Proxy) requestFor(x *Exchange) (r httpRequest) {
	doh := p.doh.Load()
	r = httpRequest{http.MethodPost, doh.host, p.path, x.Query}
	if r.host == "" {
		r.host = p.host
	}
	if doh.method == http.MethodGet && !x.check {
		r.method, r.body = http.MethodGet, nil
		r.path += "?dns=" + base64.RawURLEncoding.EncodeToString(x.Query)
	}
	return r
}

// httpResponse is what counts of a response.
type httpResponse struct {
	status                              int
	location, mediaType, encoding, ages string
	body                                []byte // the first octet beyond maxHTTPSReply is there, too
}

// field takes a field of the header. Of several of one name the first one counts.
func (r *httpResponse) field(name, value string) {
	var to *string
	switch name {
	case "location":
		to = &r.location
	case "content-type":
		to = &r.mediaType
	case "content-encoding":
		to = &r.encoding
	case "age":
		to = &r.ages
	default:
		return
	}
	if *to == "" {
		*to = value
	}
}

// responseOf is r without its body.
func responseOf(r *http.Response) *httpResponse {
	return &httpResponse{
		status: r.StatusCode, location: r.Header.Get("Location"), mediaType: r.Header.Get("Content-Type"),
		encoding: r.Header.Get("Content-Encoding"), ages: r.Header.Get("Age"),
	}
}

// redirects reports whether the request is to be made elsewhere.
func (r *httpResponse) redirects() bool {
	return r.status >= http.StatusMultipleChoices && r.status < http.StatusBadRequest && r.location != ""
}

// message is the message in r, which came from an upstream.
func (r *httpResponse) message(from string) ([]byte, error) {
	if r.status != http.StatusOK {
		return nil, fmt.Errorf("doh: %s answered with status %d", from, r.status)
	}
	b := r.body
	if strings.EqualFold(r.encoding, "gzip") && len(b) <= maxHTTPSReply {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err == nil {
			b, err = io.ReadAll(io.LimitReader(z, maxHTTPSReply+1))
		}
		if err != nil {
			return nil, fmt.Errorf("doh: %s: %w", from, err)
		}
	}
	if len(b) > wire.MaxMessage {
		return nil, errTooLong
	}
	// The page of a portal on the way, say. A reply counts, whatever it is called.
	if strings.HasPrefix(r.mediaType, "text/") {
		if _, v := replies.Inspect(b); v > replies.Bare {
			return nil, fmt.Errorf("doh: %s answered with %.60s", from, r.mediaType)
		}
	}
	if age := r.age(); age > 0 {
		older(b, age)
	}
	return b, nil
}

// age is for how many seconds caches of HTTP have had r; 0 if none says so. Of several ages the first one counts
// (RFC 9111 §5.1), and for one that is too large the largest.
func (r *httpResponse) age() uint32 {
	first, _, _ := strings.Cut(r.ages, ",")
	age, _ := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	return uint32(age)
}

// older takes the seconds for which caches of HTTP have had the message b from its TTLs (RFC 8484 §5.1).
func older(b []byte, age uint32) {
	in, v := replies.Inspect(b)
	if v != replies.Proper {
		return
	}
	left := wire.EffortOf(len(b))
	replies.EachRecord(b, in.QuestionEnd, &left, func(_, at int, _ bool) bool {
		if ttl := b[at+4 : at+8]; binary.BigEndian.Uint16(b[at:]) != wire.TypeOPT {
			binary.BigEndian.PutUint32(ttl, max(binary.BigEndian.Uint32(ttl), age)-age)
		}
		return true
	})
}

// accept makes b the reply to x if it is one. To a health check anything is.
func (p *Proxy) accept(x *Exchange, b []byte) error {
	if x.check {
		x.Reply = b
		return nil
	}
	in, v := replies.Inspect(b)
	switch {
	case p.protocol == transport.QUIC && in.ID != 0:
		v = replies.OtherID
	case v == replies.Bare:
		b, v = in.Completed(b, x.Query), replies.Proper
	case v == replies.Proper && !in.IsFor(b, x.Query):
		v = replies.OtherQuestion
	}
	if v != replies.Proper {
		p.counts.ignored.get(v).Inc()
		return ErrMismatch
	}
	x.Reply, x.Facts = b, in.Facts
	return nil
}

// roundTrip asks x's query by a library, and reads the reply into buf.
func (p *Proxy) roundTrip(ctx context.Context, x *Exchange, buf *bytes.Buffer) error {
	x.Query[0], x.Query[1] = 0, 0 // as HTTP caches need it and QUIC demands (RFC 8484 §4.1, RFC 9250 §4.2.1)
	b, err := p.carry(ctx, x, buf, func(local net.Addr) { x.Local, x.sent = local, p.engine.now() })
	if err != nil {
		return err
	}
	return p.accept(x, b)
}

// carry asks the query of x, and returns the reply, which is in buf. got is told when there is a connection for it.
func (p *Proxy) carry(ctx context.Context, x *Exchange, buf *bytes.Buffer, got func(net.Addr)) ([]byte, error) {
	switch {
	case p.protocol == transport.QUIC:
		return p.carryDoQ(ctx, x, buf, got)
	case p.protocol == transport.HTTPS3 && p.web.given.Load() == nil:
		return p.carryHTTP3(ctx, x, buf, got)
	}
	return p.fetch(ctx, p.web.get(p), x, buf, got)
}
