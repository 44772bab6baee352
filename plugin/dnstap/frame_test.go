package dnstap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/dnstap/msg"
	"github.com/coredns/coredns/plugin/pkg/wire"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"
)

func ptr[T any](v T) *T { return &v }

// Frames are what the package proto reads, with all fields and with none, however long the message is.
func TestFrames(t *testing.T) {
	all := &tap.Message{
		Type: ptr(tap.Message_FORWARDER_RESPONSE), SocketFamily: ptr(tap.SocketFamily_INET6), SocketProtocol: ptr(msg.ProtocolDOQ),
		QueryAddress: []byte{192, 0, 2, 1}, ResponseAddress: make([]byte, 16), QueryPort: ptr(uint32(53)), ResponsePort: ptr(uint32(65535)),
		QueryTimeSec: ptr(uint64(1) << 40), QueryTimeNsec: ptr(uint32(999999999)), QueryMessage: []byte("question"), QueryZone: []byte{0},
		ResponseTimeSec: ptr(uint64(0)), ResponseTimeNsec: ptr(uint32(1)), ResponseMessage: []byte{},
	}
	messages := map[string]*tap.Message{"all fields": all, "no field": new(tap.Message)}
	for _, n := range []int{100, 124, 125, 126, 127, 128, 16380, 16381, 16384, 65535} { // one, two and three octets of length
		messages["of "+time.Duration(n).String()] = &tap.Message{Type: ptr(tap.Message_CLIENT_QUERY), QueryMessage: bytes.Repeat([]byte{7}, n)}
	}
	for name, m := range messages {
		for _, h := range []*Dnstap{{}, {Identity: []byte("me"), Version: []byte("1")}} {
			for _, extra := range []string{"", "extra"} {
				b := h.appendFrame([]byte("before"), m, extra)
				if n := int(binary.BigEndian.Uint32(b[6:])); n != len(b)-10 {
					t.Fatalf("%s: a frame of %d octets says %d", name, len(b)-10, n)
				}
				want := &tap.Dnstap{Type: ptr(tap.Dnstap_MESSAGE), Message: m, Identity: h.Identity, Version: h.Version}
				if extra != "" {
					want.Extra = []byte(extra)
				}
				got := new(tap.Dnstap)
				if m.Type == nil { // a field that there has to be
					if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(b[10:], got); err != nil {
						t.Fatal(err)
					}
				} else if err := proto.Unmarshal(b[10:], got); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !proto.Equal(got, want) {
					t.Errorf("%s: got %v, want %v", name, got, want)
				}
			}
		}
	}
}

// Where a connection broke tells which frames wait on.
func TestBehind(t *testing.T) {
	frame := func(n int) []byte { return append([]byte{0, 0, 0, byte(n)}, bytes.Repeat([]byte{byte(n)}, n)...) }
	b := append(append(frame(3), frame(0)...), frame(5)...) // they begin at 0, 7 and 11
	for _, tc := range []struct{ n, from, left int }{
		{0, 7, 2}, {1, 7, 2}, {6, 7, 2}, {7, 11, 1}, {10, 11, 1}, {11, 20, 0}, {19, 20, 0},
	} {
		if rest, left := behind(b, tc.n); !bytes.Equal(rest, b[tc.from:]) || left != tc.left {
			t.Errorf("octet %d: %d frames in %x", tc.n, left, rest)
		}
	}
}

// breaking takes some octets, and then fails.
type breaking struct {
	net.Conn
	takes int
	got   []byte
}

func (c *breaking) SetWriteDeadline(time.Time) error { return nil }
func (c *breaking) Write(b []byte) (int, error) {
	n := min(c.takes, len(b))
	c.takes -= n
	if c.got = append(c.got, b[:n]...); n < len(b) {
		return n, errors.New("broken")
	}
	return n, nil
}

// Of a piece that was written in part, one frame is lost; those behind it go out on the next connection, before what
// came meanwhile.
func TestBrokenPiece(t *testing.T) {
	q := newQueue(1)
	for i := range byte(4) {
		q.take([]byte{0, 0, 0, 1, i}, 1)
	}
	if q.write(&breaking{takes: 7}, nil) == nil {
		t.Fatal("nothing broke")
	}
	q.take([]byte{0, 0, 0, 1, 4}, 1)
	select {
	case <-q.begun:
	default:
		t.Error("nobody is told that frames wait")
	}
	c := &breaking{takes: 100}
	if err := q.write(c, nil); err != nil || !bytes.Equal(c.got, []byte{0, 0, 0, 1, 2, 0, 0, 0, 1, 3, 0, 0, 0, 1, 4}) {
		t.Errorf("%v, %x", err, c.got)
	}
	if n := q.dropped.Load(); n != 1 {
		t.Errorf("%d are told as dropped", n)
	}
	if q.waiting != 0 || q.writing != 0 {
		t.Errorf("%d wait, %d are being written", q.waiting, q.writing)
	}
}

// steady takes all, and knows what it was given, in which time.
type steady struct {
	net.Conn
	got   []byte
	most  int // octets of one write
	times []time.Time
}

func (s *steady) SetWriteDeadline(t time.Time) error {
	s.times = append(s.times, t)
	return nil
}

func (s *steady) Write(b []byte) (int, error) {
	s.got, s.most = append(s.got, b...), max(s.most, len(b))
	return len(b), nil
}

// Who is slow has his time for each piece, not for all that waits; meanwhile it is told what is dropped.
func TestTimeIsThatOfAPiece(t *testing.T) {
	q := newQueue(1)
	frame := append([]byte{0, 0, 16, 0}, make([]byte, 4096)...)
	for range 100 {
		q.take(frame, 1)
	}
	pieces := (100*len(frame) + pieceSpace - 1) / pieceSpace
	warned, tick := new(warnings), make(chan time.Time, 1)
	tick <- time.Now()
	q.dropped.Store(7)
	s := new(steady)
	if err := q.write(s, q.reporting(warned, tick)); err != nil || !bytes.Equal(s.got, bytes.Repeat(frame, 100)) {
		t.Errorf("%v, %d octets are written", err, len(s.got))
	}
	if len(s.times) != pieces || s.most > pieceSpace {
		t.Errorf("%d times for %d pieces, of which the longest has %d octets", len(s.times), pieces, s.most)
	}
	if n := warned.lost(t); n != 7 || q.waiting != 0 || q.writing != 0 {
		t.Errorf("%d were told of as dropped; %d wait, %d are being written", n, q.waiting, q.writing)
	}
}

// What may wait is a bound, also while a piece is being written; the writer is told at half of it.
func TestQueueIsBounded(t *testing.T) {
	q := newQueue(1)
	q.writing = queueUnit / 4
	for i := range queueUnit {
		before := len(q.crowded)
		q.take([]byte{0, 0, 0, 0}, 1)
		if told := len(q.crowded) > before; told != (i == queueUnit/2-1) {
			t.Fatalf("told at frame %d: %v", i, told)
		}
	}
	if q.waiting != queueUnit*3/4 || q.dropped.Load() != queueUnit/4 {
		t.Errorf("%d wait, %d are dropped", q.waiting, q.dropped.Load())
	}
}

// Long frames, as of large answers, are bounded by their octets: as many as of short ones would take too much memory.
func TestQueueOfLongFrames(t *testing.T) {
	q := newQueue(1)
	defer q.close()
	q.share = math.MaxInt64 // whatever the memory of the machine that tests
	long := make([]byte, 64<<10)
	for range queueUnit {
		q.take(long, 1)
	}
	if n := len(q.pending); n < queueSpace/2 || n > queueSpace {
		t.Errorf("%d octets wait", n)
	}
	if got := int(q.dropped.Load()) + q.waiting; got != queueUnit || q.waiting == 0 {
		t.Errorf("%d frames wait, of %d that are known", q.waiting, got)
	}
}

// In a limited memory all queues together have a part of it, of which a peer that reads nothing leaves something to the
// others. What they held is free when it was written, lost or forgotten.
func TestQueuesInLittleMemory(t *testing.T) {
	if got := shareOf(128 << 20); got != 8<<20 {
		t.Errorf("queues may hold %d octets of 128 MiB", got)
	}
	before := held.Load()
	stalled, other, well := newQueue(1), newQueue(1), newQueue(1)
	for _, q := range []*queue{stalled, other, well} {
		q.share = before + 8<<20
	}
	long := append([]byte{0, 0, 0xff, 0xfc}, make([]byte, 0xfffc)...)
	for range 1000 {
		stalled.take(long, 1)
		other.take(long, 1)
	}
	if n := held.Load() - before; n < 7<<20 || n > 9<<20 || len(stalled.pending)+len(other.pending) != int(n) {
		t.Errorf("%d octets are held, %d and %d wait", n, len(stalled.pending), len(other.pending))
	}
	for range 10 {
		well.take(long, 1)
		if s := new(steady); well.write(s, nil) != nil || len(s.got) != len(long) {
			t.Fatalf("a peer that reads got %d octets of a frame", len(s.got))
		}
	}
	if stalled.write(&breaking{takes: 3 * len(long)}, func() {}) == nil {
		t.Fatal("nothing broke")
	}
	if n := held.Load() - before; len(stalled.pending)+len(other.pending) != int(n) {
		t.Errorf("%d octets are held, %d and %d wait", n, len(stalled.pending), len(other.pending))
	}
	other.abandon(new(warnings))
	stalled.close()
	if other.take(long, 1); held.Load() != before {
		t.Errorf("%d octets are held when nothing waits", held.Load()-before)
	}
}

// What a query in the wire lane pays for its two frames, with messages and without.
func BenchmarkServeWire(b *testing.B) {
	for name, full := range map[string]bool{"full": true, "short": false} {
		b.Run(name, func(b *testing.B) {
			q := newQueue(1)
			h := &Dnstap{Next: &source{out: wire.Done}, IncludeRawMessage: full, Identity: []byte("host"), Version: []byte("1"), sink: q}
			packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
			var query wire.Query
			query.Parse(packet)
			query.Arrival = time.Now()
			query.Client, query.Local = netip.MustParseAddrPort("192.0.2.1:5353"), netip.MustParseAddrPort("192.0.2.53:53")
			var w wire.Reply
			buf := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(buf)
				h.ServeWire(b.Context(), &w, &query)
				if q.waiting > queueUnit/2 {
					held.Add(-int64(len(q.pending)))
					q.pending, q.waiting = q.pending[:0], 0
				}
			}
		})
	}
}
