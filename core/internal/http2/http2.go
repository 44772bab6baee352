// Package http2 serves HTTP/2 (RFC 9113) to a Handler. It knows no DNS.
//
// net/http spends ten times as much on a request as a DNS reply costs, so this is an HTTP/2 server for requests
// that are short, and mostly answered at once: its goroutine reads frames and has requests answered, and what it
// has to say goes out in one piece before it waits.
//
//	frames ──http2.go──▶ head, DATA ──request.go──▶ Request ──Handler──▶ Response ──reply.go──▶ frames
//	                          └────────────────── stream.go ──────────────────┘
//
// What is said of streams and windows is guarded by Conn.mu; all else belongs to the reading goroutine. Start at
// Conn.Serve.
package http2

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/plugin/pkg/log"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Handler answers the requests of one connection. The goroutine that reads the connection calls its methods.
type Handler interface {
	// Serve answers r, which is good until it returns. If the answer comes later it has called Conn.Defer, and
	// reports false.
	Serve(r *Request) (resp Response, done bool)
	// Refuse is the answer to a request that is not taken.
	Refuse(why Refusal) Response
	// MaxBody is how many octets the body of a request may have.
	MaxBody() int
	// BeforeWait is called before anything that may wait.
	BeforeWait()
}

// Refusal is why a request is not taken.
type Refusal int

// The reasons for a Refusal.
const (
	LongHeader Refusal = iota
	LongBody
)

// Response is the answer to a request.
type Response struct {
	Status      int
	ContentType string
	MaxAge      int // in seconds, of Cache-Control; -1 if there is no such field
	Body        []byte
	NoBody      bool // the client gets the length of Body only
}

// Conn is a connection that speaks HTTP/2.
type Conn struct {
	*conn.Conn
	handler Handler
	r       *bufio.Reader
	framer  *http2.Framer
	dec     *hpack.Decoder
	head    head  // of the request whose header is being read
	met     bool  // the prefaces are exchanged
	midway  bool  // in a frame, of which the rest has not come
	over    bool  // the client was told which stream is the last
	idles   int   // frames since the last request
	holds   bool  // there are held streams
	wider   int64 // how much the client has widened the stream of the request that is served, before that

	ctx    context.Context // of requests that wait; ends with the connection
	cancel context.CancelFunc

	mu      sync.Mutex
	begun   bool // our preface was sent
	shrunk  bool // the client has made its dynamic table smaller, and our next header says so
	streams map[uint32]*stream
	queue   []*stream   // those whose replies wait for the client's window, in their order
	waiting int         // octets of these replies
	taken   time.Time   // when the client took some of these last
	held    []*stream   // those whose requests wait until the client takes replies
	atWork  int         // requests that are not answered yet, also of streams that are gone
	kept    int         // octets of their headers, and of those whose bodies have not come whole
	lastID  uint32      // the last stream that the client opened
	opened  uint32      // how many it opened
	cut     [16]uint32  // the last streams that we have reset, 0 for none
	cuts    int         // where the next one of these goes
	window  int64       // octets that may be sent to the connection
	initial int64       // and to a new stream
	receive int64       // octets that the client may send to the connection
	unacked int64       // octets that were received and consumed, which the client does not know
	sweeper *time.Timer // looks for streams that take too long; nil if there are none
	buf     []byte      // frames in the making
}

// Sizes of HTTP/2.
const (
	defaultWindow = 65535     // of connections and streams, before anybody has said another one
	streamWindow  = 128 << 10 // ours for streams: more than any query
	connWindow    = 256 << 10 // ours for connections: what bodies of requests may take
	ackAfter      = 32 << 10  // octets after which the client is told that they are consumed
	frameSize     = 16384     // the longest frame that everybody takes
	maxWindow     = 1<<31 - 1
	tableSize     = 4096 // of dynamic tables, before anybody has said another one
	maxHeads      = 32   // frames of one header
	readSpace     = 4096

	// maxIdles is the frames that may come without a request: a client that sends more is up to nothing good.
	// Clients of long replies send some ten WINDOW_UPDATE frames for each.
	maxIdles = 10000
)

// New speaks HTTP/2 on c.
func New(c *conn.Conn) *Conn {
	h := &Conn{Conn: c, streams: map[uint32]*stream{}, window: defaultWindow, initial: defaultWindow, receive: connWindow}
	c.Out.Cut = responseEnd
	h.r = bufio.NewReaderSize(c.Upper, readSpace)
	// The framer only reads: frames of ours are appended to buf by hand, which costs no allocation.
	h.framer = http2.NewFramer(nil, h.r)
	h.framer.SetReuseFrames()
	h.framer.SetMaxReadFrameSize(frameSize)
	h.dec = hpack.NewDecoder(tableSize, h.head.field)
	h.head.limit = c.Service().HeaderBytes
	if h.head.limit > 0 {
		h.dec.SetMaxStringLength(2 * h.head.limit) // so that most that is too long can be answered
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Serve has requests answered by h until no more come.
func (c *Conn) Serve(h Handler) {
	c.handler = h
	err := c.prefaces()
	for err == nil {
		err = c.next()
	}
	h.BeforeWait()
	code := codeOf(err)
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		c.cancel() // nobody is there to be answered
	}
	// A client that closed the connection by itself needs no GOAWAY.
	if code != http2.ErrCodeNo || c.Stopping() || errors.Is(err, os.ErrDeadlineExceeded) {
		c.goAway(code)
		c.Linger() // what a flood has left unread would have the system reset the connection, and GOAWAY be lost
	}
	if code != http2.ErrCodeNo { // the connection must not outlive it (RFC 9113 §5.4.1)
		c.cancel()
		c.drop()
		c.HangUp()
	}
	c.Out.Flush()
	<-c.Answered()
	for err = nil; err == nil && c.owes(); {
		for err == nil && c.owes() {
			err = c.next()
		}
		// What was held is at work now, and may have to wait for the client, too.
		h.BeforeWait()
		c.Out.Flush()
		<-c.Answered()
	}
	// Requests that wait use the connection up to here; what is dropped behind it nobody can be told any more.
	c.cancel()
	c.drop()
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
func (c *Conn) prefaces() error {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.r, preface); err != nil {
		return c.late(err)
	}
	if string(preface) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	if c.buf = c.appendPreface(c.buf[:0]); len(c.buf) > 0 {
		c.Out.Add(nil, c.buf)
	}
	c.mu.Unlock()
	f, err := c.framer.ReadFrame()
	if err != nil {
		return c.late(err)
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok || settings.IsAck() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.met = true
	return c.settings(settings)
}

// appendPreface appends what the connection begins with on our side, unless that was sent. It has to come before any
// other frame, also where the server ends before the client has said a word. mu is held.
func (c *Conn) appendPreface(b []byte) []byte {
	if c.begun {
		return b
	}
	c.begun = true
	streams := uint32(maxWindow)
	if n := c.Service().Streams; n > 0 {
		streams = uint32(n)
	}
	b = appendSettings(b, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: streams},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow})
	// The window of the connection cannot be set by SETTINGS, only widened (RFC 9113 §6.9.2).
	return appendWindowUpdate(b, 0, connWindow-defaultWindow)
}

// next reads one frame, or one header, and does what it asks for. An error ends the connection.
func (c *Conn) next() error {
	// Between frames a client may be idle; within one it may not: so the first octet is waited for by itself.
	if _, err := c.r.Peek(1); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.Stopping() {
			if c.IdleLeft(c.timeout()) > 0 {
				return nil
			}
			c.Service().Limited("idle_time")
		}
		return err
	}
	c.midway = true
	h, err := c.framer.ReadFrameHeader()
	if err != nil {
		return c.late(err)
	}
	f, err := c.framer.ReadFrameForHeader(h)
	var stream http2.StreamError
	switch {
	// Its padding is wrong. A header that is not read leaves the decoder's table behind that of the client.
	case h.Type == http2.FrameHeaders && errors.As(err, &stream):
		err = http2.ConnectionError(stream.Code)
	// Too short for what its flags say, which takes six octets at most (RFC 9113 §4.2, §6.2).
	case h.Length < 6 && err == io.ErrUnexpectedEOF:
		err = http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	if err == nil {
		err = c.frame(f)
	}
	if err == nil && c.holds {
		err = c.resume()
	}
	if errors.As(err, &stream) {
		c.reset(stream.StreamID, stream.Code)
		err = nil
	}
	c.midway = err != nil
	// A request sets it to 0. So floods of PING, SETTINGS or RST_STREAM end the connection, whichever they are of.
	if c.idles++; err == nil && c.idles > maxIdles {
		err = c.flood()
	}
	return c.late(err)
}

// flood counts a connection that sent frames of all kinds, but no request, and is the error that ends it.
func (c *Conn) flood() error {
	c.Service().Limited("control_frames")
	return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
}

// late counts err, if it is that what has begun to come did not come in time.
func (c *Conn) late(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.Stopping() {
		c.Service().Limited("read_time")
	}
	return err
}

// frame does what one frame asks for. CONTINUATION frames are read by headers.
func (c *Conn) frame(f http2.Frame) error {
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
		return c.abandon(f.StreamID)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			c.mu.Lock()
			c.buf = append(appendFrameHead(c.buf[:0], 8, http2.FramePing, http2.FlagPingAck, 0), f.Data[:]...)
			c.Out.Add(nil, c.buf)
			c.mu.Unlock()
		}
	// Clients do not push, and CONTINUATION frames are read with the header that they belong to.
	case *http2.PushPromiseFrame, *http2.ContinuationFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // GOAWAY and those of extensions ask for nothing
}

// settings takes over what the client says about itself (RFC 9113 §6.5).
func (c *Conn) settings(f *http2.SettingsFrame) error {
	// Our own bound: there are some ten settings, and each that changes the window costs a walk over the streams.
	if f.NumSettings() > 100 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			return c.resize(int64(s.Val))
		case http2.SettingHeaderTableSize:
			c.shrunk = c.shrunk || s.Val < tableSize
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Before what a wider window lets out: the client then knows by which settings that was sent.
	c.buf = appendFrameHead(c.buf[:0], 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	c.Out.Add(nil, c.buf)
	c.unblock()
	return nil
}

// BeforeWait is called when all that has come is served, before more is waited for.
func (c *Conn) BeforeWait() {
	// The prefaces are still being exchanged.
	if c.handler == nil {
		return
	}
	c.handler.BeforeWait()
	c.Out.Flush()
	c.ReadIn(max(c.IdleLeft(c.timeout()), 1))
	log.Idle()
}

// timeout is how long a client may be idle. Many connect before they have something to ask.
func (c *Conn) timeout() time.Duration {
	s := c.Service()
	if !c.met {
		return s.Read
	}
	return max(s.Idle, s.Read) // a request may be on its way
}

// Drain tells the client to open no more streams, and lets the reader end when none is on its way.
func (c *Conn) Drain() {
	c.mu.Lock()
	// The largest stream number says that nothing is refused yet (RFC 9113 §6.8): what is on its way is answered.
	c.buf = appendGoAway(c.appendPreface(c.buf[:0]), maxWindow, http2.ErrCodeNo)
	c.Out.Send(nil, c.buf)
	c.mu.Unlock()
	c.DrainRead()
}

// goAway tells the client that the connection ends, and which of its streams were looked at.
func (c *Conn) goAway(code http2.ErrCode) {
	c.over = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = appendGoAway(c.appendPreface(c.buf[:0]), c.lastID, code)
	c.Out.Add(nil, c.buf)
}
