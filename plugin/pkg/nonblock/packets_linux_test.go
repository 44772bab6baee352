package nonblock

import (
	"net"
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
		"batch": func(p net.PacketConn) (int, error) {
			ms := make([]ipv4.Message, 8)
			for i := range ms {
				ms[i].Buffers = [][]byte{make([]byte, 512)}
			}
			return ipv4.NewPacketConn(p).ReadBatch(ms, 0)
		},
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

func BenchmarkBatchOfPackets(b *testing.B) {
	for name, wrap := range map[string]func(net.PacketConn) net.PacketConn{"kept": Packets, "plain": func(p net.PacketConn) net.PacketConn { return p }} {
		b.Run(name, func(b *testing.B) {
			c := socket4(b)
			p := ipv4.NewPacketConn(wrap(c))
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
