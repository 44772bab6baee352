package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/quic-go/quic-go"
)

// This file asks over HTTP/3 (RFC 8484, RFC 9114): a request on each stream. What is sent and what comes there is in
// http3frames.go, what else there is on a connection in http3control.go.

var overHTTP3 = quicProtocol{
	alpn: "h3", streams: controlStreams, noError: codeNoError, cancelled: codeRequestCancelled, begin: beginHTTP3,
}

// maxHTTP3Stream is how many octets may come on a stream: a reply, and what is around it.
const maxHTTP3Stream = 2 * maxHTTPSReply

// carryHTTP3 is carry over HTTP/3. It goes where the upstream leads it, on connections to the upstream.
func (p *Proxy) carryHTTP3(ctx context.Context, x *Exchange, buf *bytes.Buffer, got func(net.Addr)) ([]byte, error) {
	r := p.requestFor(x)
	for range 1 + maxRedirects {
		var answer *httpResponse
		err := p.engine.quic.ask(ctx, x.Final, got, func(l *quicLink, s *quic.Stream) (err error) {
			buf.Reset()
			answer, err = l.askHTTP3(ctx, s, &r, buf)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case !answer.redirects():
			return answer.message(p.addr)
		case !r.follow(answer):
			return nil, errRedirect
		}
	}
	return nil, errRedirect
}

// follow makes r the request that a redirect leads to (RFC 9110 §15.4), and reports whether that may be made: in the
// clear anybody on the way could read the query, and answer it.
func (r *httpRequest) follow(to *httpResponse) bool {
	here, err := url.Parse("https://" + r.host + r.path)
	if err != nil {
		return false
	}
	there, err := here.Parse(to.location)
	if err != nil || there.Scheme != "https" || there.Host == "" {
		return false
	}
	r.host, r.path = there.Host, there.RequestURI()
	if to.status != http.StatusTemporaryRedirect && to.status != http.StatusPermanentRedirect {
		r.method, r.body = http.MethodGet, nil
	}
	return true
}

// askHTTP3 makes the request r on s, and reads the response, whose octets are in buf.
func (l *quicLink) askHTTP3(ctx context.Context, s *quic.Stream, r *httpRequest, buf *bytes.Buffer) (*httpResponse, error) {
	if !l.enter(s) {
		return nil, errNotTaken
	}
	defer l.leaves(s)
	if _, err := s.Write(r.appendHTTP3(nil)); err != nil && !enough(err) {
		return nil, l.streamFailed(ctx, s, "write", err)
	}
	s.Close() // there is one request on each stream
	if _, err := buf.ReadFrom(io.LimitReader(s, maxHTTP3Stream+1)); err != nil {
		return nil, l.streamFailed(ctx, s, "read", err)
	}
	if buf.Len() > maxHTTP3Stream {
		s.CancelRead(quic.StreamErrorCode(codeExcessiveLoad))
		return nil, errTooLong
	}
	answer, err := http3Response(buf.Bytes())
	var fault http3Fault
	if errors.As(err, &fault) {
		l.CloseWithError(fault.code, fault.what)
	}
	return answer, err
}

// enough reports whether err is that an upstream wants no more of a stream, without a complaint. One that has not read
// a request to its end may answer it all the same (RFC 9114 §4.1).
func enough(err error) bool {
	var cut *quic.StreamError
	return errors.As(err, &cut) && cut.Remote && cut.ErrorCode == quic.StreamErrorCode(codeNoError)
}

// streamFailed is err, of an operation on s. A connection whose streams fail, though it is open, takes no more
// requests: streams may be all that does not work any more. A request that is rejected, or that the upstream has gone
// away from, may be made again (RFC 9114 §4.1.1, §5.2).
func (l *quicLink) streamFailed(ctx context.Context, s *quic.Stream, op string, err error) error {
	var cut *quic.StreamError
	if ctx.Err() == nil && errors.As(err, &cut) {
		l.pool.mu.Lock()
		l.pool.retire(l)
		taken := l.takes(s)
		l.pool.mu.Unlock()
		if !taken || cut.ErrorCode == codeRequestRejected {
			return errNotTaken
		}
	}
	return l.failed(ctx, op, err)
}
