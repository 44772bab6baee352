package proxy

import (
	"bufio"
	"net"
	"slices"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	maxHeader   = 64 << 10 // octets of a response's header, packed, with what is around its pieces
	frameHeader = 9        // before each
)

// http2Reader is what the reader of HTTP/2 keeps for itself.
type http2Reader struct {
	frames *http2.Framer
	header *hpack.Decoder
	stream *http2Stream // whose header comes; nil if nobody waits for it
	status string       // of that header
	length int          // octets of it so far
	end    bool         // it ends the stream
	held   uint32       // octets of replies that are not whole
	taken  uint32       // octets of others, for which the upstream may not send as many yet
	begun  bool         // its settings have come
}

// read implements httpProtocol.
func (h *httpVersion2) read(conn net.Conn) error {
	in := &h.in
	in.frames = http2.NewFramer(nil, bufio.NewReaderSize(conn, 4096))
	in.frames.SetMaxReadFrameSize(leastFrame)
	in.frames.SetReuseFrames()
	in.header = hpack.NewDecoder(4096, in.field)
	in.header.SetMaxStringLength(leastFrame)
	for {
		f, err := in.frames.ReadFrame()
		if err == nil {
			err = h.take(f)
		}
		if broken, ok := err.(http2.StreamError); ok {
			err = h.broken(broken)
		}
		if err != nil {
			return err
		}
	}
}

// take takes a frame.
func (h *httpVersion2) take(f http2.Frame) error {
	e := h.conn.engine
	defer e.ending.enter().Done()
	e.mu.Lock()
	now := e.now()
	h.conn.hears(now)
	got, failures, err := h.frameCame(f, now)
	var x *Exchange
	if got != nil {
		x = got.x
		if got.cut || len(got.rest) > 0 { // one side goes on
			h.reset(got.id, http2.ErrCodeCancel)
		}
		h.end(got)
		if h.fewer > 0 {
			h.fewer++
		}
		h.conn.finish(x, now)
	}
	if err == nil && len(h.conn.out) > maxUnwritten {
		err = h.pestered(f)
	}
	e.unlock()
	if got != nil {
		h.conn.respond(x, &got.httpResponse)
		e.mu.Lock()
		h.reuse(got)
		e.unlock()
	}
	e.endAll(failures)
	return err
}

// pestered is an error if f had something written, of which there is too much.
func (h *httpVersion2) pestered(f http2.Frame) error {
	switch f.(type) {
	case *http2.PingFrame, *http2.SettingsFrame:
		return errPesters
	}
	return nil
}

// frameCame is told of a frame. It returns the stream whose response is whole, nil if none is, and exchanges that have
// failed. mu is held.
func (h *httpVersion2) frameCame(f http2.Frame, now int64) (got *http2Stream, failures []failure, err error) {
	in, s := &h.in, h.streams[f.Header().StreamID]
	if _, ok := f.(*http2.SettingsFrame); !ok && !in.begun {
		return nil, nil, http2.ConnectionError(http2.ErrCodeProtocol)
	}
	switch f := f.(type) {
	case *http2.HeadersFrame:
		in.begin(s, f.StreamEnded())
		got, err = in.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		got, err = in.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		got, err = h.data(s, f)
	case *http2.RSTStreamFrame:
		failures = h.wasReset(s, f.ErrCode, now)
	case *http2.GoAwayFrame:
		failures = h.goesAway(f, now)
	case *http2.SettingsFrame:
		err = h.settings(f, now)
	case *http2.PingFrame:
		if !f.IsAck() {
			h.frames.WritePing(true, f.Data)
			h.conn.flush()
		}
	case *http2.WindowUpdateFrame:
		if s != nil || f.StreamID == 0 {
			err = h.widen(s, int64(f.Increment))
		}
	case *http2.PushPromiseFrame:
		err = http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return got, failures, err
}

// begin begins with a header of s, nil if nobody waits for it.
func (in *http2Reader) begin(s *http2Stream, end bool) {
	in.stream, in.end, in.status, in.length = s, end, "", 0
}

// fragment takes a piece of a header, which may be the last one. It returns the stream if that is over.
func (in *http2Reader) fragment(b []byte, last bool) (*http2Stream, error) {
	if in.length += len(b) + frameHeader; in.length > maxHeader {
		return nil, http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	if _, err := in.header.Write(b); err != nil {
		return nil, http2.ConnectionError(http2.ErrCodeCompression)
	}
	if !last {
		return nil, nil
	}
	if err := in.header.Close(); err != nil {
		return nil, http2.ConnectionError(http2.ErrCodeCompression)
	}
	s := in.stream
	if in.stream = nil; s == nil || s.x == nil {
		return nil, nil
	}
	if !s.final {
		status, err := strconv.Atoi(in.status)
		if err != nil || status < 100 {
			return nil, http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
		}
		if status < 200 && !in.end { // and there will be another one
			s.httpResponse = httpResponse{body: s.body}
			return nil, nil
		}
		s.status, s.final = status, true
	}
	if !in.end {
		return nil, nil
	}
	return s, nil
}

// field takes a field of a header.
func (in *http2Reader) field(f hpack.HeaderField) {
	if s := in.stream; s == nil || s.final { // what is behind the body is not looked at
		return
	}
	if f.Name == ":status" {
		in.status = f.Value
		return
	}
	in.stream.field(f.Name, f.Value)
}

// data takes a piece of a reply. It returns s if that is over. mu is held.
func (h *httpVersion2) data(s *http2Stream, f *http2.DataFrame) (*http2Stream, error) {
	if h.in.held += f.Length; h.in.held+h.in.taken > ourWindow {
		return nil, http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if s == nil {
		h.giveBack(f.Length)
		return nil, nil
	}
	if s.flow += f.Length; !s.final {
		return nil, http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	}
	s.body = append(s.body, f.Data()...)
	if !f.StreamEnded() && len(s.body) <= maxHTTPSReply {
		return nil, nil
	}
	s.cut = !f.StreamEnded()
	return s, nil
}

// giveBack lets the upstream send so many octets more, as those are not held any more. mu is held.
func (h *httpVersion2) giveBack(n uint32) {
	h.in.held -= n
	if h.in.taken += n; h.in.taken >= moreWindow {
		h.frames.WriteWindowUpdate(0, h.in.taken)
		h.in.taken = 0
		h.conn.flush()
	}
}

// wasReset is told that the upstream has given s up. mu is held.
func (h *httpVersion2) wasReset(s *http2Stream, code http2.ErrCode, now int64) (failures []failure) {
	if s == nil {
		return nil
	}
	c, x := h.conn, s.x
	h.end(s)
	if code != http2.ErrCodeRefusedStream {
		c.engine.take(x, now)
		return []failure{{x, http2.StreamError{StreamID: s.id, Code: code}}}
	}
	// It takes fewer at one time than was thought, for now. One that takes none may be no good.
	h.fewer = max(len(h.streams), 1)
	c.retired = c.retired || len(h.streams) == 0 && c.answered == 0
	failures = c.refuse(x, now, nil)
	c.pool.dispatch(now) // there may be nothing else that would have it go out
	return failures
}

// goesAway is told that the upstream takes no more streams, and has not looked at some (RFC 9113 §6.8). mu is held.
func (h *httpVersion2) goesAway(f *http2.GoAwayFrame, now int64) (failures []failure) {
	c := h.conn
	c.retired, c.told = true, true
	var left []*http2Stream
	for id, s := range h.streams {
		if id > f.LastStreamID {
			left = append(left, s)
		}
	}
	if f.LastStreamID < maxStreamID {
		c.pool.limit.ended(int(f.LastStreamID+1)/2, len(left) > 0)
	}
	// The first one comes back last, and is before the others then.
	slices.SortFunc(left, func(a, b *http2Stream) int { return int(b.id) - int(a.id) })
	for _, s := range left {
		x := s.x
		h.end(s)
		failures = c.refuse(x, now, failures)
	}
	if c.pending.n == 0 {
		c.doom()
	}
	c.pool.dispatch(now)
	return failures
}

// settings takes the upstream's, and tells it so. mu is held.
func (h *httpVersion2) settings(f *http2.SettingsFrame, now int64) error {
	if f.IsAck() {
		return nil
	}
	h.in.begun = true
	if err := f.ForeachSetting(h.set); err != nil {
		return err
	}
	h.frames.WriteSettingsAck()
	h.conn.flush()
	h.conn.pool.dispatch(now)
	return nil
}

// broken has a stream end that the upstream has broken the rules on.
func (h *httpVersion2) broken(err http2.StreamError) error {
	e := h.conn.engine
	defer e.ending.enter().Done()
	e.mu.Lock()
	s := h.streams[err.StreamID]
	var x *Exchange
	if s != nil {
		x = s.x
		e.take(x, e.now()) // which gives the stream up
	}
	e.unlock()
	if x != nil {
		e.end(x, err)
	}
	return nil
}
