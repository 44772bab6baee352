package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/coredns/coredns/plugin/pkg/doh"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// httpVersion2 is HTTP/2 on a connection (RFC 9113): a stream for each query. What is sent is in this file, what comes
// in http2frames.go. The engine's lock guards it but for what is the reader's.
type httpVersion2 struct {
	conn    *httpConn
	frames  *http2.Framer // appends to what is to be written
	block   bytes.Buffer  // what header writes to
	header  *hpack.Encoder
	streams map[uint32]*http2Stream // those that are waited for
	free    []*http2Stream          // to be used again
	blocked []*http2Stream          // whose queries are not sent whole yet, in the order in which they were asked
	next    uint32                  // the next stream

	// What the upstream has set.
	most    int   // streams at one time
	fewer   int   // that it took when it refused one, and one more for each answer since; 0 if it has not
	initial int64 // octets that may be sent on a new stream
	window  int64 // octets that may be sent on the connection
	frame   int   // octets of a frame

	in http2Reader
}

// http2Stream is a request, and what has come of its response.
type http2Stream struct {
	id     uint32
	x      *Exchange
	rest   []byte // of the query, which is not sent yet
	window int64  // octets that may be sent
	flow   uint32 // octets of the reply that have come, with what is around them
	final  bool   // the header has come
	cut    bool   // the body has not come whole
	httpResponse
}

const (
	assumedStreams = 100 // until an upstream has told how many it takes at one time
	leastFrame     = 16 << 10
	firstWindow    = 64<<10 - 1 // of the connection, both ways
	maxStreamID    = 1<<31 - 1
	maxWindow      = 1<<31 - 1

	// ourStreamWindow has any reply come whole, and one octet of those that are too long.
	ourStreamWindow = 2 * maxHTTPSReply
	// ourWindow is what may come of replies that are not whole: 256 of the longest ones.
	ourWindow    = 256 * maxHTTPSReply
	moreWindow   = 64 << 10 // is given back at a time
	maxUnwritten = 1 << 20  // octets of answers to pings and the like
)

// errPesters means that an upstream asks for more than it reads.
var errPesters = errors.New("doh: the upstream does not read what it asks for")

func newHTTP2(c *httpConn) *httpVersion2 {
	h := &httpVersion2{
		conn: c, streams: map[uint32]*http2Stream{}, next: 1,
		most: cmp.Or(c.pool.streams, assumedStreams), initial: firstWindow, window: firstWindow, frame: leastFrame,
	}
	h.frames = http2.NewFramer(appender{c}, nil)
	h.header = hpack.NewEncoder(&h.block)
	return h
}

// appender appends to what is to be written on a connection.
type appender struct{ conn *httpConn }

func (a appender) Write(b []byte) (int, error) {
	a.conn.out = append(a.conn.out, b...)
	return len(b), nil
}

func (h *httpVersion2) begin() {
	h.conn.out = append(h.conn.out, http2.ClientPreface...)
	h.frames.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: ourStreamWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeader},
	)
	h.frames.WriteWindowUpdate(0, ourWindow-firstWindow)
}

func (h *httpVersion2) room() int {
	if h.next > maxStreamID {
		return 0
	}
	most := h.most
	if h.fewer > 0 {
		most = min(most, h.fewer)
	}
	return max(most-len(h.streams), 0)
}

func (h *httpVersion2) ask(x *Exchange) {
	s := h.stream(x)
	r := x.proxy.requestFor(x)
	h.block.Reset()
	write := func(name, value string, sensitive bool) {
		h.header.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: sensitive})
	}
	write(":authority", r.host, false)
	write(":method", r.method, false)
	write(":path", r.path, r.body == nil) // of GET it is never the same
	write(":scheme", "https", false)
	write("accept", doh.MimeType, false)
	write("content-type", doh.MimeType, false)
	if r.body != nil {
		write("content-length", strconv.Itoa(len(r.body)), false)
	}
	write("accept-encoding", "gzip", false)
	write("user-agent", "Go-http-client/2.0", false)
	h.writeHeader(s.id, r.body == nil)
	if s.rest = r.body; s.rest != nil && !h.writeBody(s) {
		h.blocked = append(h.blocked, s)
	}
}

// stream is a new one, for x.
func (h *httpVersion2) stream(x *Exchange) (s *http2Stream) {
	if n := len(h.free); n > 0 {
		s = h.free[n-1]
		h.free = h.free[:n-1]
		*s = http2Stream{httpResponse: httpResponse{body: s.body[:0]}}
	} else {
		s = new(http2Stream)
	}
	s.id, s.x, s.window = h.next, x, h.initial
	h.next += 2
	h.streams[s.id], x.stream = s, s
	return s
}

// writeHeader appends the frames of the header in block.
func (h *httpVersion2) writeHeader(id uint32, end bool) {
	b := h.block.Bytes()
	n := min(len(b), h.frame)
	h.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:n], EndStream: end, EndHeaders: n == len(b)})
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = min(len(b), h.frame)
		h.frames.WriteContinuation(id, n == len(b), b[:n])
	}
}

// writeBody appends as much of the query as the windows allow, and reports whether that is the rest of it.
func (h *httpVersion2) writeBody(s *http2Stream) bool {
	for len(s.rest) > 0 {
		n := min(int64(len(s.rest)), int64(h.frame), s.window, h.window)
		if n <= 0 {
			return false
		}
		h.frames.WriteData(s.id, n == int64(len(s.rest)), s.rest[:n])
		s.rest = s.rest[n:]
		s.window -= n
		h.window -= n
	}
	return true
}

// unblock sends what the windows allow now.
func (h *httpVersion2) unblock() {
	h.blocked = slices.DeleteFunc(h.blocked, h.writeBody)
	h.conn.flush()
}

// forget implements httpProtocol. A stream whose response is not whole is given up.
func (h *httpVersion2) forget(x *Exchange) {
	s := x.stream
	if s == nil {
		return
	}
	h.end(s)
	h.reset(s.id, http2.ErrCodeCancel)
}

// end takes s, whose memory is used again when reuse is called.
func (h *httpVersion2) end(s *http2Stream) {
	delete(h.streams, s.id)
	s.x.stream = nil
	if len(s.rest) > 0 {
		h.blocked = slices.DeleteFunc(h.blocked, func(b *http2Stream) bool { return b == s })
	}
	s.x, s.rest = nil, nil
	h.giveBack(s.flow)
}

// reuse keeps the memory of s, which nobody looks at any more.
func (h *httpVersion2) reuse(s *http2Stream) {
	if len(h.free) < assumedStreams && cap(s.body) <= maxKeptBody {
		h.free = append(h.free, s)
	}
}

// maxKeptBody is the memory for a response that is kept for another one.
const maxKeptBody = 4 << 10

func (h *httpVersion2) reset(id uint32, code http2.ErrCode) {
	h.frames.WriteRSTStream(id, code)
	h.conn.flush()
}

// widen lets more be sent on s, or the connection if s is nil.
func (h *httpVersion2) widen(s *http2Stream, by int64) error {
	window := &h.window
	if s != nil {
		window = &s.window
	}
	if *window += by; *window > maxWindow {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	h.unblock()
	return nil
}

// set takes settings of the upstream.
func (h *httpVersion2) set(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingMaxConcurrentStreams:
		h.most = int(min(s.Val, math.MaxInt32))
		h.conn.pool.streams = max(h.most, 1)
	case http2.SettingInitialWindowSize:
		by := int64(s.Val) - h.initial
		h.initial += by
		for _, stream := range h.streams {
			if stream.window += by; stream.window > maxWindow {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
		}
		h.unblock()
	case http2.SettingMaxFrameSize:
		h.frame = int(s.Val)
	case http2.SettingHeaderTableSize:
		h.header.SetMaxDynamicTableSizeLimit(s.Val)
	}
	return nil
}
