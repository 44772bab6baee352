package http2

import (
	"context"
	"slices"
	"time"

	"github.com/coredns/coredns/core/internal/unsent"
	"golang.org/x/net/http2"
)

// stream is a stream that is not answered at once: its request has not come whole, waits for its
// answer, or has a reply that the client's window has no room for. Streams that are answered at once never become one.
type stream struct {
	id     uint32
	req    Request
	state  state
	since  time.Time // when the state began
	window int64     // octets that may be sent to it

	length int64  // of the body, as its header says; -1 if it does not
	rest   []byte // of a reply: what has not been sent
	cancel context.CancelFunc
}

type state uint8

const (
	reading state = iota // the body has not come whole
	held                 // the request has come whole, and waits until the client takes replies; see hold
	atWork               // the query waits for its answer
	blocked              // the reply waits for the client's window
)

// openStream makes a stream for a request that has not come whole or is not answered at once. mu is held.
func (c *Conn) openStream(id uint32, req Request, state state) *stream {
	st := &stream{id: id, req: req, state: state, since: time.Now(), window: c.initial + c.wider, length: -1}
	c.streams[id] = st
	if state == reading {
		c.kept += req.size
		c.sweepLater()
	}
	return st
}

// removeStream forgets a stream. mu is held.
func (c *Conn) removeStream(st *stream) {
	delete(c.streams, st.id)
	c.consumed(len(st.req.Body))
	st.req.Body = nil
	if st.state <= held {
		c.kept -= st.req.size
	}
	if st.state == held {
		c.held = slices.DeleteFunc(c.held, func(q *stream) bool { return q == st })
	}
	if st.state == blocked {
		c.queue = slices.DeleteFunc(c.queue, func(q *stream) bool { return q == st })
		c.waiting -= len(st.rest)
		unsent.Give(len(st.rest))
		st.rest = nil
	}
	// Whoever works on the request may stop.
	if st.cancel != nil {
		st.cancel()
	}
}

// abandon forgets a stream that the client has reset. A query that is at work goes on and counts, but nobody hears
// of it.
func (c *Conn) abandon(id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.neverOpened(id) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if st := c.streams[id]; st != nil {
		c.removeStream(st)
	}
	if i := slices.Index(c.cut[:], id); i >= 0 {
		c.cut[i] = 0
	}
	return nil
}

// neverOpened reports whether the client has opened no stream so far that is id or comes behind it: that one is idle
// (RFC 9113 §5.1). mu is held.
func (c *Conn) neverOpened(id uint32) bool { return id > c.lastID || id%2 == 0 }

// closed is the error of a DATA frame, or of a header, for a stream that takes none (RFC 9113 §5.1). It is nil where we
// have reset the stream, as the client may not know yet. mu is held.
func (c *Conn) closed(id uint32, header bool) error {
	switch {
	case c.neverOpened(id):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case slices.Contains(c.cut[:], id):
		return nil
	case !header || c.streams[id] != nil:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
	// Numbers were left out: this one may never have been opened, and is too small for a new stream (§5.1.1).
	case 2*c.opened-1 != c.lastID:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return http2.ConnectionError(http2.ErrCodeStreamClosed)
}

// reset ends a stream with an error.
func (c *Conn) reset(id uint32, code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetLocked(id, code)
	c.Out.Add(nil, c.buf)
}

// resetLocked puts the frame that ends a stream into buf, and forgets the stream. mu is held.
func (c *Conn) resetLocked(id uint32, code http2.ErrCode) {
	if st := c.streams[id]; st != nil {
		c.removeStream(st)
	}
	c.buf = c.appendCut(c.buf[:0], id, code)
}

// appendCut appends the frame with which we end a stream. mu is held.
func (c *Conn) appendCut(b []byte, id uint32, code http2.ErrCode) []byte {
	c.cut[c.cuts%len(c.cut)] = id
	c.cuts++
	return appendReset(b, id, code)
}

// drop forgets all streams.
func (c *Conn) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.streams {
		c.removeStream(st)
	}
	if c.sweeper != nil {
		c.sweeper.Stop()
	}
}

// sweepLater has streams that take too long looked for after a while. mu is held.
func (c *Conn) sweepLater() {
	if c.sweeper == nil {
		// Half of the time, so that a stream that takes too long lasts one and a half times as long at most.
		c.sweeper = time.AfterFunc(min(c.Service().Read, c.Service().Write)/2, c.sweep)
	}
}

// sweep resets streams whose request does not come, or whose reply is not taken.
func (c *Conn) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.Service(), time.Now()
	c.sweeper = nil
	left := false
	for id, st := range c.streams {
		reason := ""
		switch took := now.Sub(st.since); {
		case st.state == reading && took >= s.Read:
			reason = "read_time"
		case st.state == blocked && took >= s.Write, st.state == held && min(took, now.Sub(c.taken)) >= s.Write:
			reason = "write_time"
		case st.state != atWork:
			left = true
		}
		if reason != "" {
			s.Limited(reason)
			c.resetLocked(id, http2.ErrCodeCancel)
			c.Out.Send(nil, c.buf)
		}
	}
	if left {
		c.sweepLater()
	}
}

// lastTime is how long a client that takes a reply slowly has to widen its windows, each time, when the server stops.
const lastTime = time.Second

// longBody is how long the body of a response may be.
const longBody = 64 << 10

// full reports whether there may be no room for one more reply behind those that the client has not taken. mu is held.
func (c *Conn) full() bool {
	most := c.Service().Unread
	return most > 0 && c.waiting > max(0, most-longBody)
}

// hold keeps a request that has come whole, and is not answered before the client has taken replies. It reports false
// if there is room. mu is held.
func (c *Conn) hold(st *stream) bool {
	if !c.full() {
		return false
	}
	if st.state != held {
		c.Service().Limited("unread_bytes")
		st.state, st.since, c.holds = held, time.Now(), true
		c.held = append(c.held, st)
	}
	return true
}

// resume answers requests that are held, as far as there is room now.
func (c *Conn) resume() error {
	for {
		c.mu.Lock()
		if c.holds = len(c.held) > 0; !c.holds || c.full() {
			c.mu.Unlock()
			return nil
		}
		id := c.held[0].id
		c.mu.Unlock()
		c.idles = 0
		c.Touch(time.Now())
		if err := c.bodyEnded(id); err != nil {
			return err
		}
	}
}

// owes reports whether the server stops, and there is a reply that its client takes as its windows have room. It is
// read on for that then. The reader calls it when all that was asked is answered.
func (c *Conn) owes() bool {
	if !c.Stopping() || c.midway {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.queue {
		if until := st.since.Add(lastTime); time.Now().Before(until) {
			c.Look = until
			return true
		}
	}
	return false
}

// received counts n octets of DATA frames against our window for the connection.
func (c *Conn) received(n int64) error {
	if c.receive -= n; c.receive < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	return nil
}

// consumed opens our window again for n octets that need no memory any more. mu is held.
func (c *Conn) consumed(n int) {
	if c.unacked += int64(n); c.unacked < ackAfter {
		return
	}
	// Of the connection only: a stream has one query, for which its window has room from the begin.
	c.buf = appendWindowUpdate(c.buf[:0], 0, uint32(c.unacked))
	c.Out.Add(nil, c.buf)
	c.receive += c.unacked
	c.unacked = 0
}

// widen opens the client's window for a stream, or for the connection, by n octets.
func (c *Conn) widen(id uint32, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == 0 {
		if c.window += n; c.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	} else if st := c.streams[id]; st != nil {
		if st.window += n; st.window > maxWindow {
			return http2.StreamError{StreamID: id, Code: http2.ErrCodeFlowControl}
		}
		// One that is over may still be widened.
	} else if c.neverOpened(id) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.unblock()
	return nil
}

// resize changes the client's initial window, also for streams that there are (RFC 9113 §6.9.2). mu is held.
func (c *Conn) resize(initial int64) error {
	for _, st := range c.streams {
		// It may become negative, too: then nothing is sent until the client has widened it past 0.
		if st.window += initial - c.initial; st.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	}
	c.initial = initial
	return nil
}

// unblock sends what the client's windows have room for now. mu is held.
func (c *Conn) unblock() {
	// Oldest first, and not one octet of each in turns: replies are short, and one that is complete frees its
	// memory.
	for _, st := range slices.Clone(c.queue) {
		if c.window <= 0 {
			return
		}
		before := len(st.rest)
		c.buf, st.rest = c.appendData(c.buf[:0], st, st.rest)
		if sent := before - len(st.rest); sent > 0 {
			c.waiting -= sent
			unsent.Give(sent)
			st.since = time.Now()
			c.taken = st.since
			c.Out.Add(nil, c.buf)
		}
		if len(st.rest) == 0 {
			c.removeStream(st)
		}
	}
}
