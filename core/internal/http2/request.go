package http2

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Request is a request, as it came.
type Request struct {
	ID                              uint32
	Method, Path, Scheme, Authority string
	Fields                          []hpack.HeaderField // all others
	Body                            []byte

	size int // octets of the header, with fieldSpace for each field
}

// head is a header that is being read.
type head struct {
	Request
	limit  int
	bad    bool // not as RFC 9113 §8.2, §8.3 wants it
	length int64

	expects bool // the client waits to be told to send the body (RFC 9110 §10.1.1)
}

// fieldSpace is what a header field counts beside its name and value (RFC 9113 §6.5.2).
const fieldSpace = 32

// mostKept is how many octets the headers of a connection's requests may have that are not answered yet. All of a
// header may come from a few octets, by way of the decoder's table: as many of the longest as there may be streams
// would be too much. Those of usual clients have some hundred octets, and with what proxies add, two thousand.
func (h *head) mostKept() int { return max(4*h.limit, 512<<10) }

// reset makes h ready for the next header, in the same memory.
func (h *head) reset() {
	h.Request = Request{Fields: h.Fields[:0]}
	h.bad, h.length, h.expects = false, -1, false
}

// tooLong reports whether the header is longer than the limit. It is read to its end all the same, as the decoder's
// table must stay that of the client.
func (h *head) tooLong() bool { return h.limit > 0 && h.size > h.limit }

// field takes over one field, which the decoder has read.
func (h *head) field(f hpack.HeaderField) {
	h.size += len(f.Name) + len(f.Value) + fieldSpace
	if h.tooLong() {
		return // only the decoder's table is kept
	}
	// A value with NUL, CR or LF could smuggle a field, or a line of the log (RFC 9113 §8.2.1).
	h.bad = h.bad || strings.ContainsAny(f.Value, "\x00\r\n")
	if strings.HasPrefix(f.Name, ":") {
		var to *string
		switch f.Name {
		case ":method":
			to = &h.Method
		case ":path":
			to = &h.Path
		case ":scheme":
			to = &h.Scheme
		case ":authority":
			to = &h.Authority
		}
		// An unknown pseudo-header field, one that comes twice, or one behind a regular field (RFC 9113 §8.3).
		if to == nil || *to != "" || len(h.Fields) > 0 {
			h.bad = true
			return
		}
		*to = f.Value
		return
	}
	switch f.Name {
	// Fields about the connection have no meaning here (RFC 9113 §8.2.2).
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		h.bad = true
	case "te":
		h.bad = h.bad || f.Value != "trailers"
	case "content-length":
		u, err := strconv.ParseUint(f.Value, 10, 63) // digits only (RFC 9110 §8.6)
		n := int64(u)
		h.bad = h.bad || err != nil || h.length >= 0 && h.length != n
		h.length = n
	case "expect":
		h.expects = strings.EqualFold(f.Value, "100-continue")
	}
	// Names are lower case and visible characters.
	h.bad = h.bad || f.Name == "" || strings.ContainsFunc(f.Name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r <= ' ' || r > '~' })
	h.Fields = append(h.Fields, f)
}

// complete reports whether the header is that of a request.
func (h *head) complete() bool { return !h.bad && h.Method != "" && h.Path != "" && h.Scheme != "" }

// keep is a copy of r that stays as it is, but for its body.
func (r *Request) keep() Request {
	kept := *r
	kept.Fields = slices.Clone(r.Fields)
	return kept
}

// headers reads a header, which may come in several frames, and serves its request if there is no body.
func (c *Conn) headers(f *http2.HeadersFrame) error {
	id, whole := f.StreamID, f.StreamEnded()
	// A stream cannot depend on itself; priorities mean nothing else to us (RFC 9113 §5.3.2).
	if f.HasPriority() && f.Priority.StreamDep == id {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.head.reset()
	_, err := c.dec.Write(f.HeaderBlockFragment())
	for n, ended := 1, f.HeadersEnded(); err == nil && !ended; n++ {
		// A header that never ends would hold up the connection for ever, and its fields cost time even if nothing
		// is kept of them.
		if n > maxHeads || c.head.limit > 0 && c.head.size > 4*c.head.limit {
			return c.flood()
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
		c.Service().Limited("header_bytes")
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	if err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	return c.request(id, whole)
}

// request decides what becomes of a request whose header has come. whole says that there is no body.
func (c *Conn) request(id uint32, whole bool) error {
	// Clients open odd streams (RFC 9113 §5.1.1).
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	streams := c.Service().Streams
	c.mu.Lock()
	st, known := c.streams[id], id <= c.lastID
	// Both count: streams that are gone may have left a request at work, of which the client has reset the stream to
	// open the next one.
	tooMany := !known && streams > 0 && (c.atWork >= streams || len(c.streams) >= streams)
	crowded := !known && c.head.limit > 0 && c.kept+c.head.size > c.head.mostKept()
	full := whole && c.full()
	var over error
	if !known {
		c.lastID = id
		c.opened++
	} else if st == nil || st.state != reading {
		over = c.closed(id, true)
	}
	c.mu.Unlock()
	switch {
	case st != nil && st.state == reading:
		return c.trailers(id, whole)
	case known:
		return over
	case c.over: // it asks somebody else, as it was told that it may
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	case tooMany:
		c.Service().Limited("streams")
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	case crowded && !c.head.tooLong(): // that one is answered
		c.Service().Limited("header_bytes")
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	c.idles = 0
	c.head.ID = id
	c.Touch(time.Now())
	switch {
	case c.head.tooLong():
		return c.respond(id, c.handler.Refuse(LongHeader), whole)
	case !c.head.complete() || whole && c.head.length > 0:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	case !whole && c.head.length > int64(c.handler.MaxBody()):
		return c.respond(id, c.handler.Refuse(LongBody), false)
	case !whole || full:
		return c.await(id, whole)
	}
	return c.answer(&c.head.Request)
}

// await keeps the header that was read, as the next one is read into the same memory: until the body has come whole,
// and there is room for a reply.
func (c *Conn) await(id uint32, whole bool) error {
	c.mu.Lock()
	c.openStream(id, c.head.keep(), reading).length = c.head.length
	if c.head.expects && !whole {
		c.buf = c.appendContinue(c.buf[:0], id)
		c.Out.Add(nil, c.buf)
	}
	c.mu.Unlock()
	if whole {
		return c.bodyEnded(id)
	}
	c.QuickAck()
	return nil
}

// trailers ends a body with the fields that were read (RFC 9113 §8.1). They say nothing here.
func (c *Conn) trailers(id uint32, whole bool) error {
	h := &c.head
	if !whole || h.bad || h.Method != "" || h.Path != "" || h.Scheme != "" || h.Authority != "" {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	return c.bodyEnded(id)
}

// data takes a part of a request's body.
func (c *Conn) data(f *http2.DataFrame) error {
	most := c.handler.MaxBody()
	c.mu.Lock()
	// With its padding, which counts for the windows, too (RFC 9113 §6.9).
	n := int(f.Header().Length)
	if err := c.received(int64(n)); err != nil {
		c.mu.Unlock()
		return err
	}
	st := c.streams[f.StreamID]
	if st == nil || st.state != reading {
		c.consumed(n)
		err := c.closed(f.StreamID, false)
		c.mu.Unlock()
		return err
	}
	// The padding needs no memory; the data is consumed when the body is given away.
	c.consumed(n - len(f.Data()))
	st.req.Body = append(st.req.Body, f.Data()...)
	size := int64(len(st.req.Body))
	long := size > int64(most)
	wrong := st.length >= 0 && size > st.length
	if long || wrong {
		c.removeStream(st)
	}
	c.mu.Unlock()
	switch {
	case wrong:
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	case long:
		return c.respond(f.StreamID, c.handler.Refuse(LongBody), f.StreamEnded())
	case f.StreamEnded():
		return c.bodyEnded(f.StreamID)
	}
	return nil
}

// bodyEnded serves a request whose body has come whole.
func (c *Conn) bodyEnded(id uint32) error {
	c.mu.Lock()
	st := c.streams[id]
	if st == nil { // it took too long
		c.mu.Unlock()
		return nil
	}
	body := st.req.Body
	wrong := st.length >= 0 && int64(len(body)) != st.length // RFC 9113 §8.1.1
	if !wrong && c.hold(st) {
		c.mu.Unlock()
		return nil
	}
	c.removeStream(st)
	c.wider = st.window - c.initial
	c.mu.Unlock()
	defer func() { c.wider = 0 }()
	if wrong {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	st.req.Body = body
	return c.answer(&st.req)
}

// answer has a request answered that has come whole.
func (c *Conn) answer(r *Request) error {
	resp, done := c.handler.Serve(r)
	if !done {
		return nil
	}
	return c.respond(r.ID, resp, true)
}

// Defer lets r wait for its answer: Reply has it when it is there, and Forget ends it. The Request that it returns
// stays, but for its body.
func (c *Conn) Defer(r *Request) Request {
	kept := r.keep()
	kept.Body = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openStream(r.ID, kept, atWork)
	c.atWork++
	c.kept += kept.size
	return kept
}

// Forget ends what Defer began, which returned r.
func (c *Conn) Forget(r *Request) {
	c.mu.Lock()
	c.atWork--
	c.kept -= r.size
	c.mu.Unlock()
}

// Context is a context for the request that was deferred with that id, until cancel is called, or the client resets
// the stream, or goes.
func (c *Conn) Context(id uint32) (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if st := c.streams[id]; st != nil {
		st.cancel = cancel
	} else {
		cancel()
	}
	return ctx, cancel
}

// HTTPRequest is r as net/http has it, with that body.
func (c *Conn) HTTPRequest(ctx context.Context, r *Request, body []byte) (*http.Request, error) {
	u, err := url.ParseRequestURI(r.Path)
	if err != nil {
		return nil, err
	}
	header := make(http.Header, len(r.Fields))
	for _, f := range r.Fields {
		header.Add(f.Name, f.Value)
	}
	host := r.Authority
	// HTTP/1.1 requests that a proxy has translated may have Host instead (RFC 9113 §8.3.1).
	if host == "" {
		host = header.Get("Host")
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, c.LocalAddr())
	out := &http.Request{
		Method: r.Method, URL: u, Proto: "HTTP/2.0", ProtoMajor: 2, Header: header, Host: host, RequestURI: r.Path,
		RemoteAddr: c.RemoteAddr().String(), TLS: c.TLS, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	return out.WithContext(ctx), nil
}
