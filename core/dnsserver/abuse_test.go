package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/doq"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"

	"github.com/quic-go/quic-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// nuisances are ways to hold a connection without ever asking a whole question. Each returns what holds it.
var nuisances = map[string]func(t *testing.T, scheme, addr string) io.Closer{
	"says nothing": func(t *testing.T, scheme, addr string) io.Closer {
		if overQUIC(scheme) {
			return holdQUIC(t, scheme, addr, nil)
		}
		return hold(addr)
	},
	"begins": func(t *testing.T, scheme, addr string) io.Closer {
		if overQUIC(scheme) {
			return holdQUIC(t, scheme, addr, unfinished(scheme))
		}
		c := hold(addr)
		io.WriteString(c, "\x16\x03\x01\x00") // of TLS, or of a length
		return c
	},
	"shakes hands": func(t *testing.T, scheme, addr string) io.Closer {
		if overQUIC(scheme) {
			return holdQUIC(t, scheme, addr, unfinished(scheme))
		}
		c := hold(addr)
		if scheme == "dns" {
			return c
		}
		conf := clients.Trusting.Clone()
		if scheme == "https/2" || scheme == "grpc" {
			conf.NextProtos = []string{"h2"}
		}
		over := tls.Client(c, conf)
		over.SetDeadline(time.Now().Add(clients.AskTime))
		over.Handshake()
		io.WriteString(over, "PRI") // of HTTP/2, or a length, or a method
		return c
	},
}

// unfinished is the begin of a query on a QUIC stream.
func unfinished(scheme string) []byte {
	if scheme == "quic" {
		return []byte{0, 50, 0}
	}
	return []byte{1, 50, 0} // of a HEADERS frame
}

func overQUIC(scheme string) bool { return scheme == "quic" || strings.HasPrefix(scheme, "https3") }

type closer struct{ net.Conn }

// hold opens a connection; one that cannot be opened is nothing to hold.
func hold(addr string) net.Conn {
	c, err := net.DialTimeout("tcp", addr, clients.AskTime)
	if err != nil {
		a, _ := net.Pipe()
		return closer{a}
	}
	return c
}

type quicHeld struct{ *quic.Conn }

func (q quicHeld) Close() error {
	if q.Conn == nil {
		return nil
	}
	return q.CloseWithError(0, "")
}

func holdQUIC(t *testing.T, scheme, addr string, octets []byte) io.Closer {
	conf := clients.Trusting.Clone()
	conf.NextProtos = []string{map[bool]string{true: "doq", false: "h3"}[scheme == "quic"]}
	ctx, cancel := context.WithTimeout(t.Context(), clients.AskTime)
	defer cancel()
	conn, err := quic.DialAddr(ctx, addr, conf, &quic.Config{KeepAlivePeriod: 5 * time.Second})
	if err != nil {
		return quicHeld{}
	}
	if octets != nil {
		if stream, err := conn.OpenStream(); err == nil {
			stream.Write(octets)
		}
	}
	return quicHeld{conn}
}

// TestIdleClientsDoNotHarm has clients by the hundred that open connections and never ask; new clients are answered
// at once.
func TestIdleClientsDoNotHarm(t *testing.T) {
	for _, scheme := range []string{"dns", "tls", "https/1", "https/2", "https3", "quic", "grpc"} {
		for name, nuisance := range nuisances {
			t.Run(scheme+"/"+name, func(t *testing.T) {
				t.Parallel()
				cfg := blockFor(t, scheme, new(laneHandler))
				most, none := 50, 0
				cfg.Limits.Connections, cfg.Limits.ClientConnections = &most, &none
				// A new client that has to wait for the end of an idle one waits longer than it has time.
				forever := 2 * clients.AskTime
				cfg.Limits.Handshake, cfg.ReadTimeout, cfg.IdleTimeout = &forever, forever, forever
				s := serving(t, cfg)
				before := limitedTo(s, "connections")
				var held []io.Closer
				defer func() {
					for _, c := range held {
						c.Close()
					}
				}()
				for range 3 {
					var wg sync.WaitGroup
					var mu sync.Mutex
					for range 20 {
						wg.Go(func() {
							c := nuisance(t, scheme, s.addr)
							mu.Lock()
							held = append(held, c)
							mu.Unlock()
						})
					}
					wg.Wait()
					c := clients.Connect(t, scheme, s.addr)
					if r, err := c.Ask(query("www.")); err != nil || len(r.Answer) != 1 {
						t.Errorf("behind %d of them: %v", len(held), err)
					}
					c.Close()
				}
				if limitedTo(s, "connections") == before {
					t.Error("not counted")
				}
			})
		}
	}
}

// cutConn is a connection that ends after so many octets.
type cutConn struct {
	net.Conn
	left int
}

func (c *cutConn) Write(b []byte) (int, error) {
	if len(b) < c.left {
		c.left -= len(b)
		return c.Conn.Write(b)
	}
	c.Conn.Write(b[:c.left])
	c.left = 0
	c.Conn.Close()
	return 0, net.ErrClosed
}

// cutAfter asks on a connection that ends when n octets have been sent. It reports whether the answer came.
func cutAfter(scheme, addr string, n int, b []byte) bool {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{c, n}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), clients.AskTime)
	defer cancel()
	switch scheme {
	case "dns", "tls":
		c, err := dial(ctx, "", "")
		if err != nil {
			return false
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(clients.AskTime))
		if scheme == "tls" {
			c = tls.Client(c, clients.Trusting)
		}
		if _, err := c.Write(doq.Frame(b)); err != nil {
			return false
		}
		_, err = clients.ReadFrame(c)
		return err == nil
	case "grpc":
		conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(credentials.NewTLS(clients.Trusting)),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, "", "") }))
		if err != nil {
			return false
		}
		defer conn.Close()
		_, err = pb.NewDnsServiceClient(conn).Query(ctx, &pb.DnsPacket{Msg: b})
		return err == nil
	}
	tr := &http.Transport{TLSClientConfig: clients.Trusting.Clone(), ForceAttemptHTTP2: scheme == "https/2", DialContext: dial}
	defer tr.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+addr+doh.Path, strings.NewReader(string(b)))
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return false
	}
	_, err = doh.ResponseToMsg(resp)
	return err == nil
}

// TestClientsGoAnywhere has clients leave at each octet of an exchange: the server goes on, and nothing of theirs is
// left.
func TestClientsGoAnywhere(t *testing.T) {
	for _, scheme := range []string{"dns", "tls", "https/1", "https/2", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			s := serving(t, blockFor(t, scheme, new(laneHandler)))
			step := map[string]int{"dns": 1, "tls": 11, "https/1": 11, "https/2": 11, "grpc": 31}[scheme] // handshakes are long
			for _, name := range []string{"www.", "unpack.", "park."} {
				b := packed(t, query(name))
				answered := false
				for n := 0; n < 4000 && !answered; n += step {
					answered = cutAfter(scheme, s.addr, n, b)
				}
				if !answered {
					t.Errorf("%s: never answered", name)
				}
				if _, err := clients.Connect(t, scheme, s.addr).Ask(query(name)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := s.base().Stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			s.wait()
		})
	}
}

// TestNothingIsLeft serves and stops each kind of server with all kinds of clients: no goroutine and no place in a
// limit is left.
func TestNothingIsLeft(t *testing.T) {
	before := settled()
	for _, scheme := range []string{"dns", "tls", "https/1", "https/2", "https3", "quic", "grpc"} {
		cfg := blockFor(t, scheme, new(laneHandler))
		s, err := makeServer(cfg.Transport+"://127.0.0.1:0", []*Config{cfg})
		if errors.Is(err, errLeftOut) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		addr := ""
		if p, _ := s.ListenPacket(); p != nil {
			addr = p.LocalAddr().String()
			wg.Go(func() { s.ServePacket(p) })
		}
		if l, _ := s.Listen(); l != nil {
			addr = l.Addr().String()
			wg.Go(func() { s.Serve(l) })
		}
		var held []io.Closer
		for name, nuisance := range nuisances {
			held = append(held, nuisance(t, scheme, addr))
			for _, q := range []string{"www.", "unpack.", "park.", "drop."} {
				cl := clients.Connect(t, scheme, addr)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				done := make(chan error, 1)
				go func() {
					_, err := cl.Ask(query(q))
					done <- err
				}()
				select {
				case <-ctx.Done(): // a dropped query over TCP has no answer
				case err := <-done:
					if err != nil && q != "drop." {
						t.Errorf("%s, %s, %s: %v", scheme, name, q, err)
					}
				}
				cancel()
				cl.Close()
			}
		}
		if err := s.base().Stop(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", scheme, err)
		}
		wg.Wait()
		for _, c := range held {
			c.Close()
		}
	}
	defer func() {
		if t.Failed() {
			working, waiting := exec.Waits()
			buf := make([]byte, 1<<20)
			t.Logf("%d goroutines of before are %d now; %d queries at work, %d parked, %d octets unsent\n%s",
				before, settled(), working, waiting, unsent.Octets(), buf[:runtime.Stack(buf, true)])
		}
	}()
	eventually.Holds(t, "all has ended", func() bool {
		working, waiting := exec.Waits()
		return settled() <= before+10 && working == 0 && waiting == 0 && unsent.Octets() == 0
	})
}

// settled is the number of goroutines, without workers that wait for work.
func settled() int {
	buf := make([]byte, 1<<20)
	n := 0
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if _, frames, _ := strings.Cut(g, "\n"); !strings.HasPrefix(frames, idleWorker) {
			n++
		}
	}
	return n
}

// idleWorker is how the stack of one begins: it is in no function that package exec calls.
const idleWorker = "github.com/coredns/coredns/core/internal/exec.(*workers).work("
