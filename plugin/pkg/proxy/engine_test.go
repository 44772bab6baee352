package proxy

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"

	"github.com/miekg/dns"
)

// mirror is sockets without a system: what is sent comes back at once as a reply.
type mirror struct{}

func (mirror) Open(_ netip.Addr, _ netip.AddrPort, to udpsockets.Receiver, _ *eventloop.Loop) (udpsockets.Socket, error) {
	return &mirrorSocket{to: to, buf: make([]byte, 512)}, nil
}
func (mirror) Stop() {}

type mirrorSocket struct {
	to  udpsockets.Receiver
	buf []byte
	one udpsockets.Batch
}

func (s *mirrorSocket) Send(b []byte) error {
	n := copy(s.buf, b)
	s.buf[2] |= 0x80
	s.one.Datagrams = append(s.one.Datagrams, s.buf[:n])
	s.to.Received(&s.one, nil, s.to.Now())
	return nil
}
func (s *mirrorSocket) SendAll(d *udpsockets.Datagrams) (n int, err error) {
	for b, ok := d.Next(); ok; b, ok = d.Next() {
		s.Send(b)
		n++
	}
	return n, nil
}
func (*mirrorSocket) Close()         {}
func (*mirrorSocket) Addr() net.Addr { return nil }

// counter is told ends.
type counter struct{ ends, errs int }

func (c *counter) EndExchange(x *Exchange) {
	c.ends++
	if x.Err != nil {
		c.errs++
	}
}

func mirrored(t testing.TB) *Proxy {
	p := proxyTo(t, "192.0.2.1:53", transport.DNS)
	p.SetExpire(time.Hour)
	p.engine.udp.make = func() (udpsockets.Set, error) { return mirror{}, nil }
	return p
}

// Once its sockets are open, an exchange costs no memory.
func TestBeginAllocates(t *testing.T) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0
	p := mirrored(t)
	var c counter
	x := &Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: &c}
	for range 2 * minSockets {
		p.Begin(x)
	}
	if n := testing.AllocsPerRun(1000, func() { p.Begin(x) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if c.errs > 0 || c.ends < 1000 {
		t.Errorf("%d of %d exchanges failed", c.errs, c.ends)
	}
}

func BenchmarkEngine(b *testing.B) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0
	p := mirrored(b)
	var c counter
	x := &Exchange{Query: packed.Message(b, "www.example.org.", dns.TypeA), Owner: &c}
	b.ReportAllocs()
	for b.Loop() {
		p.Begin(x)
	}
}

// owner begins an exchange again and again, cancels now and then, and sees each end once.
type owner struct {
	x     Exchange
	ended chan bool
	ends  atomic.Int64
}

func (o *owner) EndExchange(*Exchange) {
	o.ends.Add(1)
	o.ended <- true
}

// Replies, timeouts, cancels and Stop all at once: each exchange ends once, and nothing is left.
func TestEachExchangeEndsOnce(t *testing.T) {
	defer func(b int64) { socketBudget.limit = b }(socketBudget.limit)
	socketBudget.limit = 0
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		switch rand.IntN(4) {
		case 0:
		case 1:
			time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, func() { send(replyTo(q)) })
		default:
			send(replyTo(q))
			send(replyTo(q))
		}
	})
	tcp := tcpUpstream(t, func(conn net.Conn) {
		for {
			q, err := readFrame(conn)
			if err != nil || rand.IntN(50) == 0 {
				return
			}
			if rand.IntN(4) > 0 {
				conn.Write(frame(replyTo(q)))
			}
		}
	})
	for _, stream := range []bool{false, true} {
		at := addr
		if stream {
			at = tcp
		}
		p := proxyTo(t, at, transport.DNS)
		var wg sync.WaitGroup
		var begun, ended atomic.Int64
		for i := range 50 {
			wg.Go(func() {
				o := &owner{ended: make(chan bool, 2)}
				o.x = Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: o, Stream: stream}
				for range 40 {
					o.x.Timeout = time.Duration(1+rand.IntN(15)) * time.Millisecond
					begun.Add(1)
					p.Begin(&o.x)
					if rand.IntN(5) == 0 {
						p.Cancel(&o.x, errStopped)
					}
					<-o.ended
				}
				if i == 25 {
					p.Stop()
				}
				ended.Add(o.ends.Load())
			})
		}
		wg.Wait()
		if begun.Load() != ended.Load() {
			t.Errorf("stream %v: %d exchanges, %d ends", stream, begun.Load(), ended.Load())
		}
		if p.engine.wheel.n != 0 || p.engine.udp.n != 0 || len(p.engine.streams.conns) != 0 {
			t.Errorf("stream %v: %d are left in the wheel, %d sockets, %d connections", stream, p.engine.wheel.n, p.engine.udp.n, len(p.engine.streams.conns))
		}
	}
}
