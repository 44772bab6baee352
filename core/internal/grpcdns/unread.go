package grpcdns

import (
	"sync"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
)

// unread counts the replies of a connection that wait for its client, which the library keeps as long as the client's
// windows or its socket take nothing. It does not tell when it has sent one: a reply is taken for sent when as many
// octets as it has, and those before it have, were written to the connection, whatever was in them.
type unread struct {
	mu      sync.Mutex
	written int64     // octets
	due     int64     // what written is when all replies are sent
	held    int       // octets that unsent knows of
	seen    int64     // what written was when timer was set
	moved   time.Time // when something was written last, or handed over, while replies waited
	slow    bool      // replies waited when owed was asked
	timer   *time.Timer
	closed  bool
}

// hand enters a reply of n octets that the library gets now. It reports false, and enters none, if the process holds
// too many octets of such. A client that takes nothing for the time that s has for it is told to end by stalled.
func (u *unread) hand(s *service.Service, n int, stalled func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return true
	}
	if !unsent.Take(u.held, n) {
		return false
	}
	u.due = max(u.due, u.written) + int64(n)
	u.held += n
	u.moved = time.Now()
	if u.timer == nil && s.Write > 0 {
		u.seen = u.written
		u.timer = time.AfterFunc(s.Write, func() { u.look(s, stalled) })
	}
	return true
}

// took notes that n more octets were written.
func (u *unread) took(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.written += int64(n)
	if u.slow || u.held > 0 {
		u.moved = time.Now()
	}
	if left := int(max(0, u.due-u.written)); left < u.held {
		unsent.Give(u.held - left)
		u.held = left
	}
}

// lastTime is how long a client may take nothing of what waits for it when the server stops.
const lastTime = time.Second

// owed reports whether replies wait for the client, which takes them. The last octets of those are not known to wait:
// so they are owed for a moment after something was taken.
func (u *unread) owed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.slow = u.slow || u.held > 0
	return u.slow && time.Since(u.moved) < lastTime
}

// look calls stalled if nothing was written since it looked last.
func (u *unread) look(s *service.Service, stalled func()) {
	u.mu.Lock()
	stands := u.held > 0 && u.written == u.seen
	switch {
	case u.held == 0 || stands:
		u.timer = nil
	default:
		u.seen = u.written
		u.timer.Reset(s.Write)
	}
	u.mu.Unlock()
	if stands {
		s.Limited("write_time")
		stalled()
	}
}

// end gives back what is held, for good.
func (u *unread) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	unsent.Give(u.held)
	u.held = 0
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
}

// exact is the library's codec with replies in memory of their own size. Its own takes buffers of five sizes, of which
// the one for more than 32 KiB has 1 MiB; a client that does not read would have it hold 256 of them.
type exact struct{ encoding.CodecV2 }

func newExact() exact { return exact{encoding.GetCodecV2(proto.Name)} }

// Marshal implements encoding.CodecV2.
func (c exact) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(protobuf.Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	b, err := protobuf.Marshal(m)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}
