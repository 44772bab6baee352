package dnsserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2Conn is a connection of DNS over HTTP/2 (RFC 9113, RFC 8484). net/http spends ten times as much on a request as
// the answer costs, so this is an HTTP/2 server for nothing but queries: its goroutine reads frames and answers requests in the wire
// lane, and what it has to say goes out in one piece before it waits. Requests that wait do so on the workers of the process.
//
//	frames ──h2conn.go──▶ h2Head, DATA ──h2request.go──▶ query ──▶ reply ──h2reply.go──▶ frames
//	                          └───────────────── h2stream.go ─────────────────┘
//
// What is said of streams and windows is guarded by mu; all else belongs to the reading goroutine.
type h2Conn struct {
	*endpoint
	https  *ServerHTTPS
	out    streamWriter
	r      *bufio.Reader
	framer *http2.Framer
	dec    *hpack.Decoder
	head   h2Head // of the request whose header is being read
	query  []byte // of the request that is being answered
	peer   wire.Peer
	asked  bool // there was a request
	idles  int  // frames since the last request

	stint stint

	ctx    context.Context // of requests in the message lane; ends with the connection
	cancel context.CancelFunc

	mu      sync.Mutex
	streams map[uint32]*h2Stream
	queue   []*h2Stream // those whose replies wait for the client's window, in their order
	waiting int         // octets of these replies
	atWork  int         // requests that are not answered yet, also of streams that are gone
	lastID  uint32      // the last stream that the client opened
	window  int64       // octets that may be sent to the connection
	initial int64       // and to a new stream
	receive int64       // octets that the client may send to the connection
	unacked int64       // octets that were received and consumed, which the client does not know
	sweeper *time.Timer // looks for streams that take too long; nil if there are none
	buf     []byte      // frames in the making
}

// Sizes of HTTP/2.
const (
	h2Window       = 65535     // of connections and streams, before anybody has said another one
	h2StreamWindow = 128 << 10 // ours for streams: more than any query
	h2ConnWindow   = 256 << 10 // ours for connections: what bodies of requests may take
	h2AckAfter     = 32 << 10  // octets after which the client is told that they are consumed
	h2FrameSize    = 16384     // the longest frame that everybody takes
	h2MaxWindow    = 1<<31 - 1
	h2MaxHeads     = 32 // frames of one header

	// h2MaxIdles is the frames that may come without a request: a client that sends more is up to nothing good. Clients of
	// long replies send some ten WINDOW_UPDATE frames for each.
	h2MaxIdles = 10000
)

// newH2Conn takes an endpoint over whose client has chosen HTTP/2.
func newH2Conn(s *ServerHTTPS, e *endpoint) *h2Conn {
	c := &h2Conn{endpoint: e, https: s, streams: map[uint32]*h2Stream{}, window: h2Window, initial: h2Window, receive: h2ConnWindow}
	e.low.idle = c.idle
	c.out.init(e.upper, s.Server, e.cut)
	c.r = bufio.NewReaderSize(e.upper, readSpace)
	c.framer = http2.NewFramer(nil, c.r)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(h2FrameSize)
	c.dec = hpack.NewDecoder(4096, c.head.field)
	c.head.limit = s.limits.headerBytes
	if c.head.limit > 0 {
		c.dec.SetMaxStringLength(2 * c.head.limit) // so that most that is too long can be answered
	}
	c.peer = wire.PeerOf(e.conn.RemoteAddr(), e.conn.LocalAddr())
	c.peer.Proto, c.peer.Limit = wire.TCP, wire.MaxMessage
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// serve serves requests until no more come.
func (c *h2Conn) serve() {
	err := c.prefaces()
	for err == nil {
		err = c.next()
	}
	c.stint.leave()
	code := codeOf(err)
	if code == http2.ErrCodeEnhanceYourCalm {
		c.base().limited("control_frames")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		c.cancel() // nobody is there to be answered
	}
	if code != http2.ErrCodeNo || c.transport.stopping.Load() || errors.Is(err, os.ErrDeadlineExceeded) {
		c.goAway(code)
	}
	c.out.flush()
	<-c.inflight.drained()
	c.cancel()
	c.drop()
	c.out.complete()
	c.out.end()
}

// codeOf is the code with which an error ends the connection.
func codeOf(err error) http2.ErrCode {
	var cause http2.ConnectionError
	switch {
	case errors.As(err, &cause):
		return http2.ErrCode(cause)
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ErrCodeFrameSize
	}
	return http2.ErrCodeNo
}

// prefaces exchanges what connections begin with (RFC 9113 §3.4).
func (c *h2Conn) prefaces() error {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.r, preface); err != nil {
		return c.late(err)
	}
	if string(preface) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	streams := uint32(h2MaxWindow)
	if n := c.base().limits.streams; n > 0 {
		streams = uint32(n)
	}
	c.mu.Lock()
	c.buf = appendSettings(c.buf[:0], http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: streams},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: h2StreamWindow})
	c.buf = appendWindowUpdate(c.buf, 0, h2ConnWindow-h2Window)
	c.out.add(nil, c.buf)
	c.mu.Unlock()
	f, err := c.framer.ReadFrame()
	if err != nil {
		return c.late(err)
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok || settings.IsAck() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return c.settings(settings)
}

// next reads one frame, or one header, and does what it asks for. An error ends the connection.
func (c *h2Conn) next() error {
	if _, err := c.r.Peek(1); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.transport.stopping.Load() {
			if c.patience(c.timeout()) > 0 {
				return nil
			}
			c.base().limited(c.lateness())
		}
		return err
	}
	f, err := c.framer.ReadFrame()
	if err == nil {
		err = c.frame(f)
	}
	var stream http2.StreamError
	if errors.As(err, &stream) {
		c.reset(stream.StreamID, stream.Code)
		err = nil
	}
	if c.idles++; err == nil && c.idles > h2MaxIdles {
		err = http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return c.late(err)
}

// late counts err, if it is that what has begun to come did not come in time.
func (c *h2Conn) late(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.transport.stopping.Load() {
		c.base().limited("read_time")
	}
	return err
}

func (c *h2Conn) frame(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.HeadersFrame:
		return c.headers(f)
	case *http2.DataFrame:
		return c.data(f)
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		return c.settings(f)
	case *http2.WindowUpdateFrame:
		return c.widen(f.StreamID, int64(f.Increment))
	case *http2.RSTStreamFrame:
		c.abandon(f.StreamID)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.mu.Lock()
			c.buf = append(appendFrameHead(c.buf[:0], 8, http2.FramePing, http2.FlagPingAck, 0), f.Data[:]...)
			c.out.add(nil, c.buf)
			c.mu.Unlock()
		}
	case *http2.PushPromiseFrame, *http2.ContinuationFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // GOAWAY, PRIORITY and those of extensions ask for nothing
}

// settings takes over what the client says about itself (RFC 9113 §6.5).
func (c *h2Conn) settings(f *http2.SettingsFrame) error {
	if f.HasDuplicates() || f.NumSettings() > 100 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		if s.ID == http2.SettingInitialWindowSize {
			return c.resize(int64(s.Val))
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = appendFrameHead(c.buf[:0], 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	c.out.add(nil, c.buf)
	return nil
}

// idle is called when all that has come is served, before more is waited for.
func (c *h2Conn) idle() {
	c.stint.leave()
	c.out.flush()
	c.low.deadline = max(c.patience(c.timeout()), 1)
	log.Idle()
}

// timeout is how long a client may be idle.
func (c *h2Conn) timeout() time.Duration {
	s := c.base()
	if !c.asked {
		return s.ReadTimeout
	}
	return max(s.IdleTimeout, s.ReadTimeout) // a request may be on its way
}

// lateness is the limit that a client exceeds who sends nothing.
func (c *h2Conn) lateness() string {
	if !c.asked {
		return "read_time"
	}
	return "idle_time"
}

// hurry tells the client to open no more streams, and lets the reader end when none is on its way.
func (c *h2Conn) hurry() {
	c.mu.Lock()
	c.buf = appendGoAway(c.buf[:0], h2MaxWindow, http2.ErrCodeNo)
	c.out.send(nil, c.buf)
	c.mu.Unlock()
	c.conn.SetReadDeadline(time.Now().Add(drainTime))
}

// goAway tells the client that the connection ends, and which of its streams were looked at.
func (c *h2Conn) goAway(code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = appendGoAway(c.buf[:0], c.lastID, code)
	c.out.add(nil, c.buf)
}
