package proxy

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// quickUpstream answers each query with one A record, without allocating.
func quickUpstream(b *testing.B) string {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	conn.SetReadBuffer(4 << 20)
	b.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			buf[2] |= 0x80
			buf[7] = 1
			reply := append(buf[:n], 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
			conn.WriteToUDPAddrPort(reply, from)
		}
	}()
	return conn.LocalAddr().String()
}

func echoUpstream(b *testing.B) string { return tcpUpstream(b, echo) }

// warm lets as many sockets be opened as there may be.
func warm(b *testing.B, p *Proxy) {
	for range 2 * min(maxSockets, int(socketBudget.limit)) {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConnectUDP(b *testing.B) {
	p := proxyTo(b, quickUpstream(b), transport.DNS)
	p.SetExpire(time.Hour)
	warm(b, p)
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, _, err := p.Connect(context.Background(), request.Request{Req: r, W: &test.ResponseWriter{}}, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("many", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			r := r.Copy()
			for pb.Next() {
				if _, _, _, err := p.Connect(context.Background(), request.Request{Req: r, W: &test.ResponseWriter{}}, Options{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// A socket of its own for each query, as long as there are not enough.
func BenchmarkConnectNewSocket(b *testing.B) {
	p := proxyTo(b, quickUpstream(b), transport.DNS)
	p.SetMaxIdleConns(1)
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := p.Connect(context.Background(), request.Request{Req: r, W: &test.ResponseWriter{}}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConnectTCP(b *testing.B) {
	p := proxyTo(b, echoUpstream(b), transport.DNS)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		for pb.Next() {
			if _, _, _, err := p.Connect(context.Background(), request.Request{Req: r, W: &test.ResponseWriter{TCP: true}}, Options{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// chain begins its next exchange when one ends, as a server's loop would; nobody waits.
type chain struct {
	x    Exchange
	p    *Proxy
	left int
	done chan error
}

func (c *chain) EndExchange(x *Exchange) {
	if c.left--; x.Err != nil || c.left <= 0 {
		c.done <- x.Err
		return
	}
	c.p.Begin(x)
}

// The asynchronous heart alone, with 64 queries under way.
func BenchmarkBegin(b *testing.B) {
	p := proxyTo(b, quickUpstream(b), transport.DNS)
	p.SetExpire(time.Hour)
	warm(b, p)
	beginMany(b, p)
}

// beginMany has 64 queries under way.
func beginMany(b *testing.B, p *Proxy) {
	const width = 64
	b.ReportAllocs()
	b.ResetTimer()
	done := make(chan error, width)
	for range width {
		c := &chain{p: p, left: b.N/width + 1, done: done}
		c.x = Exchange{Query: packed.Message(b, "www.example.org.", dns.TypeA), Owner: c}
		p.Begin(&c.x)
	}
	for range width {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}
