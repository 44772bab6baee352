package nonblock

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// handOn has c block, as it does when a process that is begun gets a copy of it.
func handOn(t testing.TB, c *net.UDPConn) {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	unix.SetNonblock(int(f.Fd()), false)
	f.Close()
}

// batchReader is what QUIC's library looks for.
type batchReader interface {
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
}

func messages(n int) []ipv4.Message {
	ms := make([]ipv4.Message, n)
	for i := range ms {
		ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, 512)}, make([]byte, 128)
	}
	return ms
}

func socket4(t testing.TB) *net.UDPConn {
	t.Helper()
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Cleanup(func() { p.Close() })
	return p.(*net.UDPConn)
}

// Whoever reads a socket that was handed on gets what there is, be it before or while he waits, and waits no longer than
// until the deadline.
func TestPacketsThatWereHandedOn(t *testing.T) {
	for name, read := range map[string]func(net.PacketConn) (int, error){
		"one": func(p net.PacketConn) (int, error) {
			_, _, err := p.ReadFrom(make([]byte, 512))
			return 1, err
		},
		"raw":   func(p net.PacketConn) (int, error) { return ipv4.NewPacketConn(p).ReadBatch(messages(1), 0) },
		"batch": func(p net.PacketConn) (int, error) { return p.(batchReader).ReadBatch(messages(8), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := socket4(t)
			p := Packets(c)
			awake := time.AfterFunc(10*time.Second, func() { // so that the test ends
				t.Error("the reader waits in the system")
				for range 8 {
					c.WriteTo([]byte("wake"), c.LocalAddr())
				}
			})
			defer awake.Stop()
			for _, handed := range []time.Duration{0, 20 * time.Millisecond} {
				time.AfterFunc(handed, func() {
					handOn(t, c)
					c.WriteTo([]byte("query"), c.LocalAddr())
				})
				if n, err := read(p); n != 1 || err != nil {
					t.Fatalf("%d datagrams, %v", n, err)
				}
			}
			handOn(t, c)
			p.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := read(p); err == nil {
				t.Error("there was nothing to read")
			}
		})
	}
}

// A batch is of what there is also if the socket is made to block at any moment.
func TestBatchWhileHandedOn(t *testing.T) {
	c := socket4(t)
	p, end := Packets(c).(batchReader), make(chan struct{})
	handed := make(chan struct{})
	go func() {
		defer close(handed)
		for {
			select {
			case <-end:
				return
			default:
				handOn(t, c)
			}
		}
	}()
	stuck := time.AfterFunc(10*time.Second, func() {
		t.Error("the reader waits in the system")
		for range 1000 {
			c.WriteTo([]byte("wake"), c.LocalAddr())
		}
	})
	for range 2000 {
		c.WriteTo([]byte("query"), c.LocalAddr())
		if n, err := p.ReadBatch(messages(8), 0); n != 1 || err != nil {
			t.Errorf("%d datagrams, %v", n, err)
			break
		}
	}
	stuck.Stop()
	close(end)
	<-handed
}

// With each datagram is told who sent it, and what else was asked for.
func TestBatchTells(t *testing.T) {
	c := socket4(t)
	if err := ipv4.NewPacketConn(c).SetControlMessage(ipv4.FlagDst, true); err != nil {
		t.Fatal(err)
	}
	p := Packets(c).(batchReader)
	for _, texts := range [][]string{{"query"}, {"first", "the second", ""}} {
		for _, text := range texts {
			c.WriteTo([]byte(text), c.LocalAddr())
		}
		ms := messages(4)
		n, err := p.ReadBatch(ms, 0)
		if err != nil || n != len(texts) {
			t.Fatalf("%d datagrams, %v", n, err)
		}
		for i, text := range texts {
			if got := string(ms[i].Buffers[0][:ms[i].N]); got != text {
				t.Errorf("got %q for %q", got, text)
			}
			var told ipv4.ControlMessage
			if err := told.Parse(ms[i].OOB[:ms[i].NN]); err != nil || !told.Dst.IsLoopback() {
				t.Errorf("sent to %v, %v", told.Dst, err)
			}
			if ms[i].Addr.String() != c.LocalAddr().String() {
				t.Errorf("sent by %v", ms[i].Addr)
			}
		}
	}
	c.SetReadDeadline(time.Now())
	if n, err := p.ReadBatch(messages(2), 0); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d datagrams of none, %v", n, err)
	}
	c.Close()
	if n, err := p.ReadBatch(messages(2), 0); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%d datagrams of a socket that is closed, %v", n, err)
	}
}

func BenchmarkBatchOfPackets(b *testing.B) {
	for name, wrap := range map[string]func(net.PacketConn) net.PacketConn{"kept": Packets, "plain": func(p net.PacketConn) net.PacketConn { return p }} {
		b.Run(name, func(b *testing.B) {
			c := socket4(b)
			var p batchReader = ipv4.NewPacketConn(c)
			if ours, ok := wrap(c).(batchReader); ok {
				p = ours
			}
			ms := []ipv4.Message{{Buffers: [][]byte{make([]byte, 512)}, OOB: make([]byte, 128)}}
			b.ReportAllocs()
			for b.Loop() {
				c.WriteTo([]byte("query"), c.LocalAddr())
				if _, err := p.ReadBatch(ms, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
