package http2

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/unsent"
	"golang.org/x/net/http2"
)

// respond answers a request on the goroutine that reads the connection. whole says that the client has sent all
// of the request; else it is told that the rest is not wanted.
func (c *Conn) respond(id uint32, a Response, whole bool) error {
	c.mu.Lock()
	full := c.put(id, a, nil)
	c.mu.Unlock()
	if whole && !full {
		return nil
	}
	c.handler.BeforeWait()
	if err := c.Out.Flush(); err != nil || whole {
		return err
	}
	// A write of its own: some clients forget the answer if its stream ends in the same piece while they still send.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = c.appendCut(c.buf[:0], id, http2.ErrCodeNo)
	c.Out.Add(nil, c.buf)
	return nil
}

// Reply answers a request that has waited, unless its stream is gone. Any goroutine may call it; mayWait says
// whether it may wait for the client.
func (c *Conn) Reply(id uint32, a Response, mayWait bool) {
	c.mu.Lock()
	st := c.streams[id]
	if st == nil {
		c.mu.Unlock()
		return
	}
	c.put(id, a, st)
	c.mu.Unlock()
	if mayWait {
		c.Out.FlushAtWork()
	} else {
		c.Out.Send(nil, nil)
	}
}

// put puts a response behind what is to be written, as far as the client's windows allow; the rest waits. st is the
// stream, nil if it has been opened by nobody. It reports whether there is enough to be written now. mu is held.
func (c *Conn) put(id uint32, a Response, st *stream) (full bool) {
	b := c.appendResponse(c.buf[:0], id, a)
	fresh := st == nil
	if fresh {
		st = &stream{id: id, window: c.initial + c.wider}
	}
	var rest []byte
	if !a.NoBody {
		b, rest = c.appendData(b, st, a.Body)
	}
	c.buf = b
	full = c.Out.Add(nil, b)
	if len(rest) == 0 {
		if !fresh {
			c.removeStream(st)
		}
		return full
	}
	// What the window has no room for is kept for the client, within the limit of all. It was asked when there was room
	// within that of the connection; what is answered at once does not go beyond that by itself.
	most := c.Service().Unread
	if fresh && most > 0 && len(rest) > most || !unsent.Take(c.waiting, len(rest)) {
		c.Service().Limited("unread_bytes")
		// So that removeStream gives back nothing: rest was never counted.
		st.state = atWork
		c.resetLocked(id, http2.ErrCodeEnhanceYourCalm)
		c.Out.Add(nil, c.buf)
		return full
	}
	// A copy: Body lies in the memory of whoever answered.
	st.rest, st.state, st.since = append([]byte(nil), rest...), blocked, time.Now()
	c.waiting += len(rest)
	c.streams[id] = st
	c.queue = append(c.queue, st)
	c.sweepLater()
	return full
}

// appendData appends DATA frames with as much of body as the windows allow, and returns what is left. mu is held.
func (c *Conn) appendData(b []byte, st *stream, body []byte) (out, rest []byte) {
	for len(body) > 0 {
		n := int(min(int64(len(body)), frameSize, st.window, c.window))
		if n <= 0 {
			return b, body
		}
		flags := http2.Flags(0)
		if n == len(body) {
			flags = http2.FlagDataEndStream
		}
		b = append(appendFrameHead(b, n, http2.FrameData, flags, st.id), body[:n]...)
		st.window -= int64(n)
		c.window -= int64(n)
		body = body[n:]
	}
	return b, nil
}

// appendResponse appends a HEADERS frame for a. Its fields are those of HPACK's static table (RFC 7541 appendix A)
// with values in full, so that no state is shared with the client. mu is held.
func (c *Conn) appendResponse(b []byte, id uint32, a Response) []byte {
	begin := len(b)
	flags := http2.FlagHeadersEndHeaders
	if a.NoBody || len(a.Body) == 0 { // no DATA frame ends the stream
		flags |= http2.FlagHeadersEndStream
	}
	b = c.appendHeaderHead(b, flags, id)
	// Indexed fields of the static table: ":status" with these values stands at 8, 12, 13 and 14.
	switch a.Status {
	case http.StatusOK:
		b = append(b, 0x80|8)
	case http.StatusBadRequest:
		b = append(b, 0x80|12)
	case http.StatusNotFound:
		b = append(b, 0x80|13)
	case http.StatusInternalServerError:
		b = append(b, 0x80|14)
	default:
		// A literal whose name is that of entry 8, not to be put into a table, with three digits.
		b = append(b, 8, 3)
		b = strconv.AppendInt(b, int64(a.Status), 10)
	}
	var digits [24]byte
	b = appendField(b, fieldContentType, a.ContentType)
	if a.MaxAge >= 0 {
		b = appendField(b, fieldCacheControl, strconv.AppendInt(append(digits[:0], "max-age="...), int64(a.MaxAge), 10))
	}
	if a.Status != http.StatusOK {
		b = append(b, nosniff...)
	}
	b = appendField(b, fieldContentLength, strconv.AppendInt(digits[:0], int64(len(a.Body)), 10))
	b = appendField(b, fieldDate, httpDate())
	return setFrameLength(b, begin)
}

// appendContinue appends a HEADERS frame that asks for the body: status 100, and nothing else (RFC 9113 §8.1). mu is
// held.
func (c *Conn) appendContinue(b []byte, id uint32) []byte {
	begin := len(b)
	b = c.appendHeaderHead(b, http2.FlagHeadersEndHeaders, id)
	return setFrameLength(append(b, 8, 3, '1', '0', '0'), begin) // a literal, as in appendResponse
}

// appendHeaderHead appends the begin of a HEADERS frame. Where the client has made its dynamic table smaller, the first
// header behind that has to begin with a size of ours that fits (RFC 7541 §4.2): 0, as we put nothing into it.
func (c *Conn) appendHeaderHead(b []byte, flags http2.Flags, id uint32) []byte {
	b = appendFrameHead(b, 0, http2.FrameHeaders, flags, id)
	if c.shrunk {
		c.shrunk = false
		b = append(b, 0x20)
	}
	return b
}

// Fields of the static table.
const (
	fieldCacheControl  = 24
	fieldContentLength = 28
	fieldContentType   = 31
	fieldDate          = 33
)

// nosniff is a field whose name is not in the static table.
var nosniff = append(append([]byte{0, 22}, "x-content-type-options"...), append([]byte{7}, "nosniff"...)...)

// appendField appends a field whose name is in the static table at 15 or later, and which is not to be
// put into a dynamic one (RFC 7541 §6.2.2). The value is shorter than 127 octets.
func appendField[T string | []byte](b []byte, name byte, value T) []byte {
	b = append(b, 0x0F, name-15, byte(len(value)))
	return append(b, value...)
}

// date is the time as HTTP writes it, good for a second.
type date struct {
	second int64
	text   string
}

var lastDate atomic.Pointer[date]

// httpDate is the value of a Date field (RFC 9110 §6.6.1).
func httpDate() string {
	now := time.Now()
	d := lastDate.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
		lastDate.Store(d)
	}
	return d.text
}

// frameHeadLen is the octets of the begin of a frame (RFC 9113 §4.1).
const frameHeadLen = 9

// appendFrameHead appends the begin of a frame: length, type, flags, stream.
func appendFrameHead(b []byte, length int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, id)
}

// responseEnd is where the first response of b, which is whole frames, ends: before the next header.
func responseEnd(b []byte) (n int) {
	for n == 0 || n < len(b) && b[n+3] != byte(http2.FrameHeaders) {
		n += frameHeadLen + int(binary.BigEndian.Uint32(b[n:])>>8)
	}
	return n
}

// setFrameLength sets the length of a frame that begins at begin and ends where b does.
func setFrameLength(b []byte, begin int) []byte {
	n := len(b) - begin - frameHeadLen
	b[begin], b[begin+1], b[begin+2] = byte(n>>16), byte(n>>8), byte(n)
	return b
}

// appendSettings and those below append whole frames of control (RFC 9113 §6).
func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendFrameHead(b, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

func appendWindowUpdate(b []byte, id, n uint32) []byte {
	b = appendFrameHead(b, 4, http2.FrameWindowUpdate, 0, id)
	return binary.BigEndian.AppendUint32(b, n)
}

func appendReset(b []byte, id uint32, code http2.ErrCode) []byte {
	b = appendFrameHead(b, 4, http2.FrameRSTStream, 0, id)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode) []byte {
	b = appendFrameHead(b, 8, http2.FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}
