package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/coredns/coredns/plugin/pkg/doh"
)

// http1 is HTTP/1.1 on a connection: one request after the other (RFC 9112).
type http1 struct {
	conn *httpConn
	x    *Exchange // under way
}

// maxHTTP1Response is how many octets of a response are read.
const maxHTTP1Response = maxHTTPSReply + 192<<10

var errUnasked = errors.New("doh: a response came that nobody has asked for")

func (h *http1) begin() {}

func (h *http1) room() int {
	if h.x != nil {
		return 0
	}
	return 1
}

func (h *http1) ask(x *Exchange) {
	h.x = x
	r := x.proxy.requestFor(x)
	b := h.conn.out
	b = append(append(b, r.method...), ' ')
	b = append(append(b, r.path...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, r.host...), "\r\nUser-Agent: Go-http-client/1.1\r\nAccept: "+doh.MimeType+
		"\r\nContent-Type: "+doh.MimeType+"\r\nAccept-Encoding: gzip\r\n"...)
	if r.body != nil {
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, int64(len(r.body)), 10), "\r\n"...)
	}
	b = append(b, "\r\n"...)
	h.conn.out = append(b, r.body...)
}

// forget implements httpProtocol. What is not waited for comes all the same, and keeps the connection from others.
func (h *http1) forget(x *Exchange) {
	if h.x == x {
		h.x, h.conn.retired = nil, true
	}
}

func (h *http1) read(conn net.Conn) error {
	c, e := h.conn, h.conn.engine
	limited := &io.LimitedReader{R: conn}
	r := bufio.NewReaderSize(limited, 4096)
	for {
		limited.N = maxHTTP1Response
		if _, err := r.Peek(1); err != nil {
			return err
		}
		e.mu.Lock()
		c.hears(e.now())
		x := h.x
		e.unlock()
		if x == nil {
			return errUnasked
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		if resp.StatusCode < http.StatusOK {
			if resp.StatusCode == http.StatusSwitchingProtocols {
				return errUnasked
			}
			continue
		}
		got := responseOf(resp)
		if got.body, err = io.ReadAll(io.LimitReader(resp.Body, maxHTTPSReply+1)); err != nil {
			return err
		}
		last := resp.Close || len(got.body) > maxHTTPSReply
		if !h.responded(got, last) {
			return nil
		}
		if last {
			return io.EOF
		}
	}
}

// responded has the request under way end with a response, which may be the last one of the connection. It reports
// false if nobody waits for it.
func (h *http1) responded(r *httpResponse, last bool) bool {
	c, e := h.conn, h.conn.engine
	defer e.ending.enter().Done()
	e.mu.Lock()
	x := h.x
	if x == nil {
		e.unlock()
		return false
	}
	if h.x = nil; last {
		c.retired = true
	}
	c.finish(x, e.now())
	e.unlock()
	c.respond(x, r)
	return true
}
