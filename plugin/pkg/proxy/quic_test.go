package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// quicUpstream is a scripted upstream over QUIC: it gives each connection to handle.
func quicUpstream(t testing.TB, cfg *tls.Config, conf *quic.Config, handle func(*quic.Conn)) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return quicUpstreamOn(t, conn, cfg, conf, handle)
}

// quicUpstreamOn is quicUpstream on a socket of the test's own.
func quicUpstreamOn(t testing.TB, socket net.PacketConn, cfg *tls.Config, conf *quic.Config, handle func(*quic.Conn)) string {
	t.Helper()
	if cfg = cfg.Clone(); cfg.NextProtos == nil {
		cfg.NextProtos = []string{"doq"}
	}
	l, err := quic.Listen(socket, cfg, conf)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var conns []*quic.Conn
	running.Go(func() {
		for {
			conn, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			running.Go(func() { handle(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.CloseWithError(0, "")
		}
		mu.Unlock()
		running.Wait()
	})
	return l.Addr().String()
}

// streams gives each stream of conn to handle, on goroutines.
func streams(conn *quic.Conn, handle func(*quic.Stream)) {
	for {
		s, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go handle(s)
	}
}

// echoStream answers the query of a stream.
func echoStream(s *quic.Stream) {
	b, err := io.ReadAll(s)
	if err == nil && len(b) > 2 && int(binary.BigEndian.Uint16(b)) == len(b)-2 && b[2] == 0 && b[3] == 0 {
		s.Write(frame(replyTo(b[2:])))
	}
	s.Close()
}

// quicTo is a Proxy that trusts roots.
func quicTo(t testing.TB, addr string, roots *x509.CertPool) *Proxy {
	p := proxyTo(t, addr, transport.QUIC)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	return p
}

func askMany(t *testing.T, p *Proxy, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("a%d.example.org.", i)
			if m, err := ask(p, name, Options{}); err != nil || m.Question[0].Name != name || len(m.Answer) != 1 {
				t.Errorf("%s: %v %v", name, m, err)
			}
		})
	}
	wg.Wait()
}

func TestDoQ(t *testing.T) {
	server, roots := authority(t)
	var conns atomic.Int64
	addr := quicUpstream(t, server, nil, func(conn *quic.Conn) {
		conns.Add(1)
		streams(conn, echoStream)
	})
	p := quicTo(t, addr, roots)
	patient(p)
	p.SetReadTimeout(20 * time.Second)
	askMany(t, p, 100) // as many as have streams
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	if err := p.GetHealthchecker().Check(p); err != nil {
		t.Error(err)
	}
	for name, cfg := range map[string]*tls.Config{"unknown authority": {}, "another name": {RootCAs: roots, ServerName: "dns.example.net"}, "none": nil} {
		p := proxyTo(t, addr, transport.QUIC)
		p.SetReadTimeout(20 * time.Second)
		if cfg != nil {
			p.SetTLSConfig(cfg)
		}
		var op *net.OpError
		if _, err := ask(p, "www.example.org.", Options{}); !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("%s: %v", name, err)
		}
		if p.GetHealthchecker().Check(p) == nil {
			t.Errorf("%s: is well", name)
		}
	}
}

// narrow is a link that takes 1280 octets: with the headers of IPv6 and UDP, datagrams of 1232.
type narrow struct{ net.PacketConn }

func (n narrow) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		if size, from, err := n.PacketConn.ReadFrom(b); size <= 1232 {
			return size, from, err
		}
	}
}

// An upstream is reached over the narrowest link of IPv6.
func TestDoQNarrowLink(t *testing.T) {
	server, roots := authority(t)
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	addr := quicUpstreamOn(t, narrow{socket}, server, &quic.Config{InitialPacketSize: 1200}, func(c *quic.Conn) { streams(c, echoStream) })
	askMany(t, quicTo(t, addr, roots), 1)
}

// An upstream may take few streams at a time: the others wait for their turn.
func TestDoQStreamsAreBounded(t *testing.T) {
	server, roots := authority(t)
	var most atomic.Int64
	addr := quicUpstream(t, server, &quic.Config{MaxIncomingStreams: 3}, func(conn *quic.Conn) {
		var now atomic.Int64
		streams(conn, func(s *quic.Stream) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(5 * time.Millisecond)
			now.Add(-1)
			echoStream(s)
		})
	})
	askMany(t, quicTo(t, addr, roots), 60)
	if n := most.Load(); n < 2 || n > 3 {
		t.Errorf("%d at a time", n)
	}
}

// A connection that the upstream closed between two queries, or under one, is no query's business; the new one
// resumes the session.
func TestDoQClosedConnections(t *testing.T) {
	server, roots := authority(t)
	for name, under := range map[string]bool{"idle": false, "under a query": true} {
		t.Run(name, func(t *testing.T) {
			var conns, resumed atomic.Int64
			arrived := make(chan struct{}, 10) // replies, at the client
			addr := quicUpstream(t, server, nil, func(conn *quic.Conn) {
				conns.Add(1)
				if conn.ConnectionState().TLS.DidResume {
					resumed.Add(1)
				}
				for n := 0; ; n++ {
					s, err := conn.AcceptStream(context.Background())
					if err != nil {
						return
					}
					if under && n == 1 {
						conn.CloseWithError(0, "")
						return
					}
					echoStream(s)
					if !under {
						<-arrived
						conn.CloseWithError(0, "")
						return
					}
				}
			})
			p := quicTo(t, addr, roots)
			for i := range 10 {
				if _, err := ask(p, "www.example.org.", Options{}); err != nil {
					t.Fatal(i, err)
				}
				if !under {
					l := linkOf(p)
					arrived <- struct{}{}
					<-l.Context().Done()
				}
			}
			if c, r := conns.Load(), resumed.Load(); c < 9 || r < c-2 {
				t.Errorf("%d connections, %d resumed", c, r)
			}
		})
	}
}

// linkOf is the connection that the last query went over.
func linkOf(p *Proxy) *quicLink {
	q := &p.engine.quic
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.links[len(q.links)-1]
}

// Idle connections close by themselves, and old ones when the next query comes.
func TestDoQIdle(t *testing.T) {
	server, roots := authority(t)
	var conns atomic.Int64
	ended := make(chan error, 10)
	addr := quicUpstream(t, server, nil, func(conn *quic.Conn) {
		conns.Add(1)
		streams(conn, echoStream)
		<-conn.Context().Done() // AcceptStream may fail before
		ended <- context.Cause(conn.Context())
	})
	p := quicTo(t, addr, roots)
	p.SetExpire(150 * time.Millisecond)
	for i := range int64(2) {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil || conns.Load() != i+1 {
			t.Fatalf("%v on connection %d", err, conns.Load())
		}
		l := linkOf(p)
		eventually.Holds(t, "an idle connection ends", func() bool { return l.Context().Err() != nil })
		var idle *quic.IdleTimeoutError
		if err := context.Cause(l.Context()); !errors.As(err, &idle) {
			t.Error(err)
		}
	}
	p = quicTo(t, addr, roots)
	p.SetMaxAge(20 * time.Millisecond)
	for range 3 {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
	}
	for range 2 {
		var app *quic.ApplicationError
		select {
		case err := <-ended:
			if !errors.As(err, &app) {
				t.Error(err)
			}
		case <-time.After(3 * time.Second):
			t.Fatal("an old one lives on")
		}
	}
}

// A connection to an upstream that is not there any more costs the queries on it only.
func TestDoQDeadConnection(t *testing.T) {
	server, roots := authority(t)
	var mute atomic.Bool
	addr := quicUpstream(t, server, nil, func(conn *quic.Conn) {
		dead := mute.Load()
		streams(conn, func(s *quic.Stream) {
			if !dead {
				echoStream(s)
			}
		})
	})
	mute.Store(true)
	p := quicTo(t, addr, roots)
	p.SetReadTimeout(100 * time.Millisecond)
	began := time.Now()
	if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	mute.Store(false)
	p.SetReadTimeout(time.Minute)
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Error(err)
	}
}

// What is no reply fails the query; what DoQ does not allow ends the connection with a protocol error.
func TestDoQOddReplies(t *testing.T) {
	server, roots := authority(t)
	for name, tc := range map[string]struct {
		reply func(q []byte) []byte
		want  error
		ends  bool
	}{
		"nothing":          {func([]byte) []byte { return nil }, errQUICReply, false},
		"half a length":    {func([]byte) []byte { return []byte{0} }, errQUICReply, true},
		"no octet":         {func([]byte) []byte { return []byte{0, 0} }, ErrMismatch, true},
		"cut short":        {func(q []byte) []byte { return frame(replyTo(q))[:20] }, errQUICReply, true},
		"more than one":    {func(q []byte) []byte { return append(frame(replyTo(q)), frame(replyTo(q))...) }, errQUICReply, true},
		"no message":       {func(q []byte) []byte { b := replyTo(q); return frame(b[:len(b)-1]) }, ErrMismatch, true},
		"an id":            {func(q []byte) []byte { b := replyTo(q); b[1] = 7; return frame(b) }, ErrMismatch, true},
		"another question": {func(q []byte) []byte { b := replyTo(q); b[13] ^= 1; return frame(b) }, ErrMismatch, false},
		"no reply":         {func(q []byte) []byte { return frame(q) }, ErrMismatch, false},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			p := quicTo(t, quicUpstream(t, server, nil, func(conn *quic.Conn) {
				streams(conn, func(s *quic.Stream) {
					b, _ := io.ReadAll(s)
					s.Write(tc.reply(b[2:]))
					s.Close()
				})
				<-conn.Context().Done() // AcceptStream may fail before
				ended <- context.Cause(conn.Context())
			}), roots)
			if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, tc.want) {
				t.Error(err)
			}
			p.Stop()
			var app *quic.ApplicationError
			if err := <-ended; !errors.As(err, &app) || (app.ErrorCode == doqProtocolError) != tc.ends {
				t.Errorf("the connection ends with %v", err)
			}
		})
	}
}

// A reply is whole when all of it is there, though its stream should not end.
func TestDoQStreamsWithoutEnd(t *testing.T) {
	server, roots := authority(t)
	addr := quicUpstream(t, server, &quic.Config{MaxIncomingStreams: 3}, func(conn *quic.Conn) {
		streams(conn, func(s *quic.Stream) {
			b, _ := io.ReadAll(s)
			for _, octet := range frame(replyTo(b[2:])) {
				s.Write([]byte{octet})
			}
			<-s.Context().Done()
			s.CancelWrite(0)
		})
	})
	askMany(t, quicTo(t, addr, roots), 20)
}

func TestDoQIsCancelledAndStopped(t *testing.T) {
	server, roots := authority(t)
	asked := make(chan struct{}, 10)
	p := quicTo(t, quicUpstream(t, server, nil, func(conn *quic.Conn) {
		streams(conn, func(*quic.Stream) { asked <- struct{}{} })
	}), roots)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	if _, err := askCtx(ctx, p, "www.example.org.", Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() { <-asked; p.Stop() }()
	if _, err := ask(p, "www.example.org.", Options{}); err == nil || err.Error() != ErrTransportStopped {
		t.Error(err)
	}
	if _, err := ask(p, "www.example.org.", Options{}); err == nil || err.Error() != ErrTransportStopped {
		t.Error(err)
	}
	// Nobody is there.
	p = quicTo(t, "127.0.0.1:1", roots)
	p.SetReadTimeout(50 * time.Millisecond)
	if _, err := ask(p, "www.example.org.", Options{}); err == nil {
		t.Error("a reply from nobody")
	}
}

// A query that is given up, as a hedge is whose other half was quicker, or one that the upstream refuses, says nothing against its connection.
func TestDoQKeepsConnections(t *testing.T) {
	server, roots := authority(t)
	var conns atomic.Int64
	silent, refused := make(chan struct{}), make(chan struct{})
	addr := quicUpstream(t, server, nil, func(conn *quic.Conn) {
		conns.Add(1)
		for i := 0; ; i++ {
			s, err := conn.AcceptStream(context.Background())
			if err != nil {
				return
			}
			switch i {
			case 1:
				close(silent)
			case 2:
				s.CancelWrite(doqRequestCancelled)
				s.CancelRead(doqRequestCancelled)
				close(refused)
			default:
				go echoStream(s)
			}
		}
	})
	p := quicTo(t, addr, roots)
	p.SetReadTimeout(10 * time.Second)
	askMany(t, p, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-silent; cancel() }()
	if _, err := askCtx(ctx, p, "www.example.org.", Options{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := ask(p, "www.example.org.", Options{}); err == nil {
		t.Fatal("a stream that was reset had a reply")
	}
	<-refused
	askMany(t, p, 3)
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A query whose connections end one after the other, which answer others, is asked on the next one.
func TestDoQConnectionsEndUnderAQuery(t *testing.T) {
	server, roots := authority(t)
	var conns atomic.Int64
	held, answered := make(chan struct{}), make(chan struct{})
	addr := quicUpstream(t, server, nil, func(conn *quic.Conn) {
		n := conns.Add(1)
		for i := 0; ; i++ {
			s, err := conn.AcceptStream(context.Background())
			if err != nil {
				return
			}
			switch {
			case n == 1 && i == 1:
				conn.CloseWithError(doqNoError, "")
			case n == 2 && i == 0:
				close(held)
				go func() {
					<-answered
					conn.CloseWithError(doqNoError, "")
				}()
			default:
				go echoStream(s)
			}
		}
	})
	p := quicTo(t, addr, roots)
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	askMany(t, p, 1)
	var asking sync.WaitGroup
	asking.Go(func() { askMany(t, p, 1) })
	<-held
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Error(err)
	}
	close(answered)
	asking.Wait()
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// Queries over QUIC, with 64 under way. The upstream's side is in the figures, too.
func BenchmarkBeginQUIC(b *testing.B) {
	server, roots := authority(b)
	beginMany(b, quicTo(b, quicUpstream(b, server, &quic.Config{MaxIncomingStreams: 1 << 20}, func(conn *quic.Conn) { streams(conn, echoStream) }), roots))
}

// The same over HTTP/3.
func BenchmarkBeginHTTP3(b *testing.B) {
	server, roots := authority(b)
	server = server.Clone()
	server.NextProtos = []string{"h3"}
	p := proxyTo(b, quicUpstream(b, server, &quic.Config{MaxIncomingStreams: 1 << 20}, func(conn *quic.Conn) { streams(conn, answersHTTP3) }), transport.HTTPS3)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	beginMany(b, p)
}

// Others began to open a connection, and hear nothing: who can go to another upstream does so at once, and who can not has one more
// connection opened.
func TestDoQJoinedHandshake(t *testing.T) {
	server, roots := authority(t)
	addr := quicUpstream(t, server, nil, func(conn *quic.Conn) { streams(conn, echoStream) })
	query, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, final := range []bool{false, true} {
		p := quicTo(t, addr, roots)
		patient(p)
		q := &p.engine.quic
		d := &quicDial{done: make(chan struct{}), err: os.ErrDeadlineExceeded}
		q.dialling = d
		ended := make(told, 1)
		p.Begin(&Exchange{Query: query, Final: final, Owner: ended})
		eventually.Holds(t, "it waits for the connection", func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			return d.waiters == 1
		})
		q.mu.Lock()
		q.dialling = nil
		close(d.done)
		q.mu.Unlock()
		if x := <-ended; (x.Err == nil) != final {
			t.Errorf("final %v: %v", final, x.Err)
		}
	}
}
