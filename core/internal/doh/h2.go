package doh

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/http2"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// h2 answers the requests of one connection of HTTP/2.
type h2 struct {
	*http2.Conn
	batch exec.Batch
	peer  wire.Peer
	query []byte // of the request that is being answered
}

// newH2 answers requests that come on c. Replies are as long as messages can be.
func newH2(c *http2.Conn) *h2 {
	h := &h2{Conn: c, peer: wire.PeerOf(c.RemoteAddr(), c.LocalAddr())}
	h.peer.Proto, h.peer.Limit = wire.TCP, wire.MaxMessage
	return h
}

// BeforeWait implements http2.Handler.
func (h *h2) BeforeWait() {
	h.batch.Leave()
	h.Release()
}

// MaxBody implements http2.Handler.
func (h *h2) MaxBody() int {
	if n := h.Service().QueryBytes; n > 0 && n < wire.MaxMessage {
		return n
	}
	return wire.MaxMessage
}

// Refuse implements http2.Handler.
func (h *h2) Refuse(why http2.Refusal) http2.Response {
	s := h.Service()
	if why == http2.LongHeader {
		s.Limited("header_bytes")
		return respondH2(s, tooLong)
	}
	s.Limited("query_bytes")
	log.Debugf(errPacket, service.ErrLong)
	return respondH2(s, bad)
}

// respondH2 counts a response of s, and writes it as HTTP/2 has it.
func respondH2(s *service.Service, a answer) http2.Response {
	settings(s).count(s.Label, a.status)
	if a.status == http.StatusOK {
		return http2.Response{Status: a.status, ContentType: doh.MimeType, MaxAge: maxAge(a.body, time.Now()), Body: a.body}
	}
	return http2.Response{Status: a.status, ContentType: plainText, MaxAge: -1, Body: a.body, NoBody: a.noBody}
}

// Serve implements http2.Handler: requests that need not wait are answered in the wire lane.
func (h *h2) Serve(r *http2.Request) (resp http2.Response, done bool) {
	s := h.Serving()
	switch ok, err := h.accepts(s, r); {
	case err == errPanic:
		return respondH2(s, noReply), true
	case err != nil || !ok:
		return respondH2(s, notFound), true
	}
	packet, err := r.Body, error(nil)
	switch r.Method {
	case http.MethodGet:
		_, query, _ := strings.Cut(r.Path, "?")
		// It lies in memory of the connection: the query is answered, or copied by Later, before the next one comes.
		h.query, err = doh.AppendQuery(h.query[:0], query)
		packet = h.query
		if err == nil && s.TooLong(len(packet)) {
			return h.Refuse(http2.LongBody), true
		}
	case http.MethodPost:
	default:
		_, err = doh.Packet(&http.Request{Method: r.Method}) // to say why not
	}
	if err != nil {
		log.Debugf(errPacket, err)
		a := bad
		// The client is told how long the text would be (RFC 9110 §9.3.2).
		a.noBody = r.Method == http.MethodHead
		return respondH2(s, a), true
	}
	out := wire.Unpack
	h.batch.Enter()
	h.peer.Arrival = h.batch.Began
	if s.Wire {
		var b []byte
		if b, out = h.batch.Run.Serve(s, packet, h.peer, h.batch.Loop, nil); b != nil {
			return respondH2(s, packed(b)), true
		}
	}
	// A plugin has dropped the query; over HTTP the client is told so.
	if out == wire.Done {
		return respondH2(s, noReply), true
	}
	// Later may wait, and the loop is wanted by others; the Run still has what the query is about.
	run := h.batch.LeaveWith()
	defer run.Free()
	exec.Later(&h2Query{h2: h, req: h.Defer(r)}, s, packet, &run.Query, out)
	return resp, false
}

// accepts reports whether a request is one for us. The error is that there is none to be validated, or that of
// validated.
func (h *h2) accepts(s *service.Service, r *http2.Request) (ok bool, err error) {
	if settings(s).Valid == nil {
		path, _, _ := strings.Cut(r.Path, "?")
		if strings.Contains(path, "%") { // another way to write the same (RFC 3986 §6.2.2.2)
			path, _ = url.PathUnescape(path)
		}
		return path == doh.Path, nil
	}
	// Who has a function of his own pays for a request as net/http has it.
	req, err := h.HTTPRequest(context.Background(), r, r.Body)
	if err != nil {
		return false, err
	}
	return validated(s, req)
}

// h2Query is where a query came from that waits for its answer. It implements exec.Source; Conn.Defer keeps the
// request, and End has it forgotten.
type h2Query struct {
	*h2
	req      http2.Request
	service  *service.Service
	answered bool
}

// Begin implements exec.Source.
func (q *h2Query) Begin(s *service.Service) {
	q.service = s
	q.h2.Begin(s)
}

// Reply implements exec.Source.
func (q *h2Query) Reply(b []byte, mayWait bool) { q.respond(packed(b), mayWait) }

// Flush has what others were answered go out, while this one waits for a place.
func (q *h2Query) Flush() { q.Out.Flush() }

// respond answers the request; what comes after that is for nobody.
func (q *h2Query) respond(a answer, mayWait bool) {
	q.answered = true
	q.Conn.Reply(q.req.ID, respondH2(q.service, a), mayWait)
}

// End implements exec.Source. It is called when the query is over, also if nobody has answered it.
func (q *h2Query) End(s *service.Service) {
	// Too many waited, or a handler wrote nothing.
	if !q.answered {
		q.respond(noReply, true)
	}
	q.Forget(&q.req)
	q.h2.End(s)
}

// ServeMessage implements exec.Source. The query's context ends when the client resets the stream.
func (q *h2Query) ServeMessage(s *service.Service, packet []byte) {
	ctx, cancel := q.Context(q.req.ID)
	defer cancel()
	r, err := q.HTTPRequest(ctx, &q.req, nil)
	if err != nil {
		log.Debugf(errPacket, err)
		q.respond(bad, true)
		return
	}
	if q.req.Method == http.MethodPost { // the body was read, and packet is memory that is used again
		r.ContentLength = int64(len(packet))
	}
	w := &Writer{service: s, raddr: q.RemoteAddr(), laddr: q.LocalAddr(), request: r}
	msg, err := exec.Receive(s, w, packet, true)
	if msg != nil {
		s.ServeDNS(context.WithValue(ctx, RequestKey{}, r), w, msg)
	}
	q.respond(w.answer(err), true)
}
