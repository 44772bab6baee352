package conn

import (
	"bytes"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// paper is a connection on which each write waits until it is let through, with an error or nil.
type paper struct {
	net.Conn
	begun   chan int // gets the octets of each write when it begins
	through chan error

	mu     sync.Mutex
	pieces []string
	time   time.Time   // the deadline that was set last
	times  []time.Time // those of the writes
}

func newPaper() *paper { return &paper{begun: make(chan int, 100), through: make(chan error, 100)} }

func (p *paper) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.time = t
	return nil
}

func (p *paper) Write(b []byte) (int, error) {
	p.begun <- len(b)
	if err := <-p.through; err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces = append(p.pieces, string(b))
	p.times = append(p.times, p.time)
	return len(b), nil
}

func (p *paper) written() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pieces
}

// writing is a Writer on paper. cut counts how often it has cut the connection.
func writing(t *testing.T, change func(*service.Service)) (w *Writer, p *paper, s *service.Service, cut *int) {
	t.Helper()
	s = &service.Service{Label: coretest.Label(t), Write: time.Minute}
	if change != nil {
		change(s)
	}
	eventually.Holds(t, "connections of other tests have ended", func() bool { return unsent.Octets() == 0 })
	w, p, cut = new(Writer), newPaper(), new(int)
	w.init(p, coretest.SeatOf(s), func() { *cut++ })
	t.Cleanup(func() {
		w.end()
		if n := unsent.Octets(); n != 0 {
			t.Errorf("%d octets are left in the ledger", n)
		}
	})
	return w, p, s, cut
}

// What comes while one piece is being written goes out in the next one, in the order in which it came.
func TestPiecesGather(t *testing.T) {
	w, p, _, _ := writing(t, nil)
	first := make(chan error)
	go func() { first <- w.WriteFrame([]byte("a")) }()
	<-p.begun
	w.SendFrame([]byte("bb"))
	w.AddFrame([]byte("ccc"))
	w.Send([]byte("d"), []byte("d"))
	p.through <- nil
	if n := <-p.begun; n != 2+2+2+3+2 {
		t.Errorf("the second piece has %d octets", n)
	}
	p.through <- nil
	if err := <-first; err != nil {
		t.Error(err)
	}
	w.complete()
	if got := strings.Join(p.written(), "|"); got != "\x00\x01a|\x00\x02bb\x00\x03cccdd" {
		t.Errorf("wrote %q", got)
	}
	if left := time.Until(p.time); left < 0 || left > time.Minute {
		t.Errorf("the client has %v to take a piece", left)
	}
}

// Add does not write; it tells when there is enough for that.
func TestAddTellsWhenFull(t *testing.T) {
	w, p, _, _ := writing(t, nil)
	if w.Add(nil, make([]byte, piece-1)) || !w.Add([]byte("x"), nil) || !w.AddFrame(nil) {
		t.Errorf("a piece of %d octets is full too early or too late", piece)
	}
	if len(p.begun) != 0 {
		t.Error("somebody writes")
	}
	p.through <- nil
	if err := w.Flush(); err != nil || len(p.written()) != 1 || len(p.written()[0]) != piece+2 {
		t.Errorf("%v, %d pieces", err, len(p.written()))
	}
}

// A message that no length can tell is nobody's but its writer's.
func TestFrameTooLong(t *testing.T) {
	w, p, _, cut := writing(t, nil)
	long := make([]byte, wire.MaxMessage+1)
	if err := w.WriteFrame(long); !errors.Is(err, errLongMessage) {
		t.Errorf("got %v", err)
	}
	if w.AddFrame(long) {
		t.Error("is there")
	}
	w.SendFrame(long)
	p.through <- nil
	if err := w.WriteFrame(long[1:]); err != nil || *cut != 0 {
		t.Errorf("the longest: %v", err)
	}
	w.complete()
	if got := p.written(); len(got) != 1 || len(got[0]) != 2+wire.MaxMessage || !bytes.HasPrefix([]byte(got[0]), []byte{0xFF, 0xFF}) {
		t.Errorf("wrote %d pieces", len(got))
	}
}

// Who writes waits as long as the client has more to take than the limit.
func TestUnreadIsWaitedFor(t *testing.T) {
	w, p, _, _ := writing(t, func(s *service.Service) { s.Unread = 1000 })
	w.Send(nil, make([]byte, 10))
	<-p.begun // the client takes its time
	w.Add(nil, make([]byte, 1001))
	second := make(chan error)
	go func() { second <- w.Flush() }()
	select {
	case <-second:
		t.Fatal("did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	p.through <- nil
	p.through <- nil
	if err := <-second; err != nil {
		t.Error(err)
	}
	w.complete()
}

// A client that takes nothing in time is counted and cut off, and nothing more is written to it.
func TestWriteErrors(t *testing.T) {
	for err, counts := range map[error]int{os.ErrDeadlineExceeded: 1, net.ErrClosed: 0} {
		t.Run(err.Error(), func(t *testing.T) {
			w, p, s, cut := writing(t, nil)
			p.through <- err
			if got := w.WriteFrame([]byte("a")); got != err || *cut != 1 || coretest.Limited(s, "write_time") != counts {
				t.Errorf("got %v, cut %d times, counted %d", got, *cut, coretest.Limited(s, "write_time"))
			}
			<-p.begun
			if got := w.WriteFrame([]byte("b")); got != err || *cut != 1 || len(p.begun) != 0 {
				t.Errorf("got %v, and writes on", got)
			}
			if w.Flush() != err {
				t.Error("forgotten")
			}
		})
	}
}

// Beyond what may wait in all of the process a connection is cut off.
func TestTooMuchUnsent(t *testing.T) {
	unsent.SetMax(int(unsent.Octets()) + 1000)
	defer unsent.SetMax(memory.MaxUnsent)
	w, p, s, cut := writing(t, nil)
	p.through <- nil
	if err := w.WriteFrame(make([]byte, 100)); err != nil {
		t.Errorf("a short one: %v", err)
	}
	if err := w.WriteFrame(make([]byte, 2000)); err != unsent.Err || *cut != 1 || coretest.Limited(s, "in_flight_bytes") != 1 {
		t.Errorf("a long one: %v, cut %d times, counted %d", err, *cut, coretest.Limited(s, "in_flight_bytes"))
	}
	w.end()
	if err := w.WriteFrame(make([]byte, 2000)); err == nil || coretest.Limited(s, "in_flight_bytes") != 1 {
		t.Errorf("after its end: %v, counted %d", err, coretest.Limited(s, "in_flight_bytes"))
	}
}

// What others have begun to write is waited for at the end of a connection.
func TestCompleteWaits(t *testing.T) {
	w, p, _, _ := writing(t, nil)
	w.Send(nil, []byte("a"))
	<-p.begun
	w.Add(nil, []byte("b"))
	done := make(chan struct{})
	go func() { w.complete(); close(done) }()
	select {
	case <-done:
		t.Fatal("did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	p.through <- nil
	p.through <- nil
	<-done
	if got := strings.Join(p.written(), "|"); got != "a|b" {
		t.Errorf("wrote %q", got)
	}
}

// A buffer that was needed once is not kept by a connection that is idle.
func TestLongBuffersAreGivenBack(t *testing.T) {
	before := unsent.Octets()
	w, p, _, _ := writing(t, nil)
	p.through <- nil
	w.WriteFrame(make([]byte, 60000))
	w.complete()
	if n := unsent.Octets() - before; n > 2*keptSpace {
		t.Errorf("%d octets are kept", n)
	}
	w.Send(nil, make([]byte, 60000))
	<-p.begun
	<-p.begun
	w.Add(nil, make([]byte, 60000)) // both of its buffers are long
	p.through <- nil
	p.through <- nil
	w.complete()
	if n := unsent.Octets() - before; n > 2*keptSpace {
		t.Errorf("%d octets are kept of two", n)
	}
}

// The client has its time for each message, or as many octets as one may have: not for all that waits.
func TestTimeIsThatOfAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		cut     func([]byte) int
		through []bool // for each write: the time begins anew
	}{
		"octets":   {nil, []bool{true, true, true}},
		"messages": {func([]byte) int { return 40000 }, []bool{true, true, true, false}},
		"few":      {func([]byte) int { return 20000 }, []bool{true, false, false, true, false, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, _, _ := writing(t, nil)
			if c.cut != nil {
				pieces := 0
				w.low = new(lowerConn)
				w.Cut = func(b []byte) int {
					if pieces++; pieces > 1 && !w.low.holds.Load() {
						t.Errorf("piece %d is not held for the next one", pieces-1)
					}
					return c.cut(b)
				}
				defer func() {
					if w.low.holds.Load() {
						t.Error("the last piece is held")
					}
				}()
			}
			for range c.through {
				p.through <- nil
			}
			w.Send(nil, make([]byte, 2*longest+1000))
			w.complete()
			var got []bool
			var before time.Time
			for _, deadline := range p.times {
				got = append(got, deadline.After(before))
				before = deadline
			}
			if !slices.Equal(got, c.through) {
				t.Errorf("the time of writes begins anew: %v, want %v", got, c.through)
			}
		})
	}
}
