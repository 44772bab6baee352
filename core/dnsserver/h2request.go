package dnsserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2Request is the header of a request.
type h2Request struct {
	method, path, scheme, authority string
	fields                          []hpack.HeaderField // all others
}

// h2Head is a header that is being read.
type h2Head struct {
	h2Request
	limit  int
	size   int
	bad    bool // not as RFC 9113 §8.2, §8.3 wants it
	length int64
}

func (h *h2Head) reset() {
	h.h2Request = h2Request{fields: h.fields[:0]}
	h.size, h.bad, h.length = 0, false, -1
}

func (h *h2Head) tooLong() bool { return h.limit > 0 && h.size > h.limit }

// field takes over one field, which the decoder has read.
func (h *h2Head) field(f hpack.HeaderField) {
	h.size += len(f.Name) + len(f.Value) + headerFieldSpace
	if h.tooLong() {
		return // only the decoder's table is kept
	}
	if strings.HasPrefix(f.Name, ":") {
		var to *string
		switch f.Name {
		case ":method":
			to = &h.method
		case ":path":
			to = &h.path
		case ":scheme":
			to = &h.scheme
		case ":authority":
			to = &h.authority
		}
		if to == nil || *to != "" || len(h.fields) > 0 {
			h.bad = true
			return
		}
		*to = f.Value
		return
	}
	switch f.Name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		h.bad = true
	case "te":
		h.bad = h.bad || f.Value != "trailers"
	case "content-length":
		n, err := strconv.ParseInt(f.Value, 10, 64)
		h.bad = h.bad || err != nil || n < 0 || h.length >= 0 && h.length != n
		h.length = n
	}
	h.bad = h.bad || f.Name == "" || strings.ContainsFunc(f.Name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r <= ' ' || r > '~' }) ||
		strings.ContainsAny(f.Value, "\x00\r\n")
	h.fields = append(h.fields, f)
}

// complete reports whether the header is that of a request.
func (h *h2Head) complete() bool { return !h.bad && h.method != "" && h.path != "" && h.scheme != "" }

// keep is a copy of the header that stays as it is.
func (h *h2Head) keep() h2Request {
	r := h.h2Request
	r.fields = slices.Clone(h.fields)
	return r
}

// headers reads a header, which may come in several frames, and serves its request if there is no body.
func (c *h2Conn) headers(f *http2.HeadersFrame) error {
	id, whole := f.StreamID, f.StreamEnded()
	if f.HasPriority() && f.Priority.StreamDep == id {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.head.reset()
	_, err := c.dec.Write(f.HeaderBlockFragment())
	for n, ended := 1, f.HeadersEnded(); err == nil && !ended; n++ {
		if n > h2MaxHeads || c.head.limit > 0 && c.head.size > 4*c.head.limit {
			return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
		}
		more, ferr := c.framer.ReadFrame()
		if ferr != nil {
			return ferr
		}
		cont, ok := more.(*http2.ContinuationFrame)
		if !ok {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		_, err = c.dec.Write(cont.HeaderBlockFragment())
		ended = cont.HeadersEnded()
	}
	if err == nil {
		err = c.dec.Close()
	}
	if err == hpack.ErrStringLength {
		c.base().limited("header_bytes")
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	if err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	return c.request(id, whole)
}

// request decides what becomes of a request whose header has come. whole says that there is no body.
func (c *h2Conn) request(id uint32, whole bool) error {
	s := c.base()
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	st, known := c.streams[id], id <= c.lastID
	tooMany := !known && s.limits.streams > 0 && (c.atWork >= s.limits.streams || len(c.streams) >= s.limits.streams)
	c.lastID = max(c.lastID, id)
	c.mu.Unlock()
	switch {
	case st != nil && st.state == h2Reading && whole: // these were trailers
		return c.bodyEnded(id)
	case known: // of a stream that is over; the client may not know yet
		return nil
	case tooMany:
		s.limited("streams")
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	c.idles, c.asked = 0, true
	c.endpoint.last.Store(sinceStart())
	switch {
	case c.head.tooLong():
		s.limited("header_bytes")
		return c.respond(id, httpTooLong, whole)
	case !c.head.complete() || whole && c.head.length > 0:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	case c.head.method == http.MethodPost && !whole:
		if s.tooLong(int(max(0, c.head.length))) || c.head.length > wire.MaxMessage+1 {
			return c.respond(id, c.longBody(), false)
		}
		c.mu.Lock()
		c.openStream(id, c.head.keep(), h2Reading).length = c.head.length
		c.mu.Unlock()
		return nil
	}
	return c.answer(id, &c.head.h2Request, nil, whole)
}

// longBody counts a query that is too long.
func (c *h2Conn) longBody() httpAnswer {
	c.base().limited("query_bytes")
	log.Debugf(errHTTPPacket, errLongQuery)
	return httpBad
}

// data takes a part of a request's body.
func (c *h2Conn) data(f *http2.DataFrame) error {
	c.mu.Lock()
	n := int(f.Header().Length)
	if err := c.received(int64(n)); err != nil {
		c.mu.Unlock()
		return err
	}
	st := c.streams[f.StreamID]
	if st == nil || st.state != h2Reading {
		c.consumed(n)
		c.mu.Unlock()
		if f.StreamID > c.lastID {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		return nil // what is left of a stream that is over
	}
	c.consumed(n - len(f.Data()))
	st.body = append(st.body, f.Data()...)
	long := len(st.body) > wire.MaxMessage+1 || c.base().tooLong(len(st.body))
	wrong := st.length >= 0 && (int64(len(st.body)) > st.length || f.StreamEnded() && int64(len(st.body)) < st.length)
	if long || wrong {
		c.removeStream(st)
	}
	c.mu.Unlock()
	switch {
	case wrong:
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	case long:
		return c.respond(f.StreamID, c.longBody(), f.StreamEnded())
	case f.StreamEnded():
		return c.bodyEnded(f.StreamID)
	}
	return nil
}

// bodyEnded serves a request whose body has come whole.
func (c *h2Conn) bodyEnded(id uint32) error {
	c.mu.Lock()
	st := c.streams[id]
	if st == nil { // it took too long
		c.mu.Unlock()
		return nil
	}
	body := st.body
	c.removeStream(st)
	c.mu.Unlock()
	return c.answer(id, &st.head, body, true)
}

// answer serves a request. whole says that the client has sent all of it.
func (c *h2Conn) answer(id uint32, head *h2Request, body []byte, whole bool) error {
	if !c.accepts(head) {
		return c.respond(id, httpNotFound, whole)
	}
	packet, err := body, error(nil)
	switch head.method {
	case http.MethodGet:
		_, query, _ := strings.Cut(head.path, "?")
		c.query, err = doh.AppendQuery(c.query[:0], query)
		packet = c.query
		if err == nil && c.base().tooLong(len(packet)) {
			return c.respond(id, c.longBody(), whole)
		}
	case http.MethodPost:
	default:
		_, err = doh.Packet(&http.Request{Method: head.method}) // to say why not
	}
	if err != nil {
		log.Debugf(errHTTPPacket, err)
		bad := httpBad
		bad.noBody = head.method == http.MethodHead
		return c.respond(id, bad, whole)
	}
	out := wire.Unpack
	c.stint.enter()
	c.peer.Arrival = c.stint.began
	if c.base().wire {
		var reply []byte
		if reply, out = c.stint.run.serve(c.base(), packet, c.peer, c.stint.lane, nil); reply != nil {
			return c.respond(id, httpReply(reply), whole)
		}
	}
	if out == wire.Done {
		return c.respond(id, httpNoReply, whole)
	}
	c.later(id, head, packet, out)
	return nil
}

// later lets a request wait for its answer.
func (c *h2Conn) later(id uint32, head *h2Request, packet []byte, out wire.Outcome) {
	r := c.stint.leaveWith()
	defer runs.Put(r)

	kept := *head
	kept.fields = slices.Clone(head.fields)
	c.mu.Lock()
	c.openStream(id, kept, h2AtWork)
	c.atWork++
	c.mu.Unlock()
	laterOn(&h2Query{conn: c, id: id, head: kept}, packet, &r.query, out)
}

// accepts reports whether a request is one for us.
func (c *h2Conn) accepts(head *h2Request) bool {
	if c.https.valid == nil {
		path, _, _ := strings.Cut(head.path, "?")
		return path == doh.Path
	}
	r, err := c.httpRequest(c.ctx, head, nil)
	return err == nil && c.https.valid(r)
}

// httpRequest is a request as net/http has it.
func (c *h2Conn) httpRequest(ctx context.Context, head *h2Request, body []byte) (*http.Request, error) {
	u, err := url.ParseRequestURI(head.path)
	if err != nil {
		return nil, err
	}
	header := make(http.Header, len(head.fields))
	for _, f := range head.fields {
		header.Add(f.Name, f.Value)
	}
	host := head.authority
	if host == "" {
		host = header.Get("Host")
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, c.conn.LocalAddr())
	r := &http.Request{
		Method: head.method, URL: u, Proto: "HTTP/2.0", ProtoMajor: 2, Header: header, Host: host, RequestURI: head.path,
		RemoteAddr: c.conn.RemoteAddr().String(), TLS: c.state, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	return r.WithContext(ctx), nil
}

// h2Query is where a query came from that waits for its answer.
type h2Query struct {
	conn     *h2Conn
	id       uint32
	head     h2Request
	answered bool
}

func (q *h2Query) base() *Server       { return q.conn.base() }
func (q *h2Query) room() *waitingQuery { return nil }
func (q *h2Query) begin()              { q.conn.begin() }

// reply sends a reply of the wire lane.
func (q *h2Query) reply(b []byte, mayWait bool) { q.respond(httpReply(b), mayWait) }

func (q *h2Query) respond(a httpAnswer, mayWait bool) {
	q.answered = true
	q.conn.finish(q.id, a, mayWait)
}

// end is called when the query is over, also if nobody has answered it.
func (q *h2Query) end() {
	c := q.conn
	if !q.answered {
		q.respond(httpNoReply, true)
	}
	c.mu.Lock()
	c.atWork--
	c.mu.Unlock()
	c.end()
}

// serveMessage serves the query in the message lane. Its context ends when the client resets the stream.
func (q *h2Query) serveMessage(packet []byte) {
	c := q.conn
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.mu.Lock()
	if st := c.streams[q.id]; st != nil {
		st.cancel = cancel
	} else {
		cancel()
	}
	c.mu.Unlock()
	r, err := c.httpRequest(ctx, &q.head, packet)
	if err != nil {
		log.Debugf(errHTTPPacket, err)
		q.respond(httpBad, true)
		return
	}
	dw := &DoHWriter{server: c.base(), raddr: c.conn.RemoteAddr(), laddr: c.conn.LocalAddr(), request: r}
	msg, err := unpackRequest(packet)
	if err == nil {
		dw.verify(packet, msg)
		c.base().ServeDNS(context.WithValue(ctx, HTTPRequestKey{}, r), dw, msg)
	}
	q.respond(dw.answer(err), true)
}
