package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// udpUpstream is a scripted upstream: it gives each datagram to handle, which sends what it likes.
func udpUpstream(t testing.TB, handle func(query []byte, from *net.UDPAddr, send func([]byte))) string {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return serveDatagrams(t, conn, handle)
}

// serveDatagrams has a socket be a scripted upstream.
func serveDatagrams(t testing.TB, conn *net.UDPConn, handle func(query []byte, from *net.UDPAddr, send func([]byte))) string {
	t.Helper()
	conn.SetReadBuffer(4 << 20)
	var running sync.WaitGroup
	running.Go(func() {
		buf := make([]byte, wire.MaxMessage)
		for {
			n, from, err := conn.ReadFromUDP(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				handle(append([]byte(nil), buf[:n]...), from, func(b []byte) { conn.WriteToUDP(b, from) })
			}
		}
	})
	t.Cleanup(func() {
		conn.Close()
		running.Wait()
	})
	return conn.LocalAddr().String()
}

// tcpUpstream is a scripted upstream: it gives each connection to handle, which may close it.
func tcpUpstream(t testing.TB, handle func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveConns(t, l, handle)
	return l.Addr().String()
}

func serveConns(t testing.TB, l net.Listener, handle func(conn net.Conn)) {
	var running sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			running.Go(func() {
				handle(conn)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

func readFrame(r io.Reader) ([]byte, error) {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(n[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

func frame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

// replyTo answers a query with one A record.
func replyTo(query []byte) []byte {
	b := append([]byte(nil), query...)
	b[2] |= 0x80
	n := 12
	for b[n] != 0 {
		n += int(b[n]) + 1
	}
	b = append(b[:n+5:n+5], 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
	copy(b[6:], []byte{0, 1, 0, 0, 0, 0})
	return b
}

// echo serves a connection, each query at once.
func echo(conn net.Conn) {
	for {
		q, err := readFrame(conn)
		if err != nil {
			return
		}
		conn.Write(frame(replyTo(q)))
	}
}

// proxyTo is a Proxy that the test stops.
func proxyTo(t testing.TB, addr, protocol string) *Proxy {
	t.Helper()
	p := NewProxy("test", addr, protocol)
	t.Cleanup(p.Stop)
	return p
}

func ask(p *Proxy, name string, opts Options) (*dns.Msg, error) {
	return askCtx(context.Background(), p, name, opts)
}

func askCtx(ctx context.Context, p *Proxy, name string, opts Options) (*dns.Msg, error) {
	r := new(dns.Msg).SetQuestion(name, dns.TypeA)
	m, _, _, err := p.Connect(ctx, request.Request{Req: r, W: &test.ResponseWriter{}}, opts)
	if err == nil && m.Id != r.Id {
		return nil, errors.New("the reply has another id")
	}
	return m, err
}
