package grpcdns

import (
	"net"
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/service"
)

// The library can only tell all clients to go. So the frame that tells one of them is put between those of the library.

// goAway is a GOAWAY frame that refuses nothing: what is on its way is answered (RFC 9113 §6.8).
var goAway = []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// lastCall is how long a client has for its calls on their way, and to go, when it was told. Only tests change it.
var lastCall = time.Second

// leaveTime is how much longer it is kept while such calls are at work.
const leaveTime = 5 * time.Second

// frames is a connection above TLS, to which the library writes.
type frames struct {
	net.Conn

	mu     sync.Mutex
	begun  bool // the library has written what connections begin with
	head   [9]byte
	headed int  // octets of a frame's head that were written
	left   int  // octets of its payload that are still to be written
	leaves bool // GOAWAY is to be written
}

// Write implements net.Conn.
func (f *frames) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.Conn.Write(b)
	f.follow(b[:n])
	if err == nil {
		f.tell()
	}
	return n, err
}

// follow notes where the frames end that b is of, which was written.
func (f *frames) follow(b []byte) {
	f.begun = true
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			f.left -= n
			b = b[n:]
			continue
		}
		n := copy(f.head[f.headed:], b)
		b = b[n:]
		if f.headed += n; f.headed == len(f.head) {
			f.headed, f.left = 0, int(f.head[0])<<16|int(f.head[1])<<8|int(f.head[2])
		}
	}
}

// tell writes GOAWAY if it is to be written and the frame before it is complete. If that fails, so does the library's
// next write.
func (f *frames) tell() {
	if f.leaves && f.begun && f.headed == 0 && f.left == 0 {
		f.leaves = false
		_, _ = f.Conn.Write(goAway)
	}
}

// leave tells the client to go. It waits for a client that takes nothing.
func (f *frames) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaves = true
	f.tell()
}

// learnTime is how long a client has, when the server stops, to learn that it is to go. What it calls until then is on
// its way. Only tests change it.
var learnTime = 250 * time.Millisecond

// tell tells the clients to go that there are. The library does not before all handshakes are over.
func (t *Transport) tell() {
	t.admission.Each(func(conn any) {
		c := conn.(*admittedConn)
		if f := c.frames.Load(); f != nil {
			c.told.Store(service.Now())
			go f.leave()
		}
	})
}

// learns reports whether a client that was told to go may not know that yet.
func (c *admittedConn) learns() bool {
	at := c.told.Load()
	return at > 0 && service.Now()-at < int64(learnTime)
}

// Evict implements conn.Evictable. A client that was told asks on another connection from then on. For the moment until
// it knows, closing would lose its calls.
func (c *admittedConn) Evict(now bool) {
	f := c.frames.Load()
	if now || f == nil {
		c.Conn.Close()
		return
	}
	go f.leave()
	time.AfterFunc(lastCall, func() { c.end(time.Now().Add(leaveTime)) })
}

// end closes the connection when its calls are answered, or at the latest then. The library writes the reply to a call
// behind our back, see Transport.Stop.
func (c *admittedConn) end(latest time.Time) {
	since, idle := c.IdleSince()
	if time.Now().After(latest) || idle && service.Now()-since >= int64(service.DrainTime) && !c.Owed() {
		c.Conn.Close()
		return
	}
	time.AfterFunc(service.DrainTime, func() { c.end(latest) })
}
