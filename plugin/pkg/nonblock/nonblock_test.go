package nonblock

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// pair is a connection, the client's end first.
func pair(t testing.TB) (client, server *net.TCPConn) {
	t.Helper()
	packets, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	packets.Close()
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func plain(c *net.TCPConn) net.Conn { return c }

func ours(c *net.TCPConn) net.Conn { return Conn(c) }

func TestConn(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	if Conn(a) != a {
		t.Error("a pipe is another one")
	}
	if Conn(nil) != nil {
		t.Error("none is one")
	}
	c, _ := pair(t)
	if got := Conn(c); runtime.GOOS == "linux" && got == net.Conn(c) {
		t.Error("a connection is the same")
	}
}

// Much goes both ways, in pieces that both ends' sockets do not take at once.
func TestMuch(t *testing.T) {
	client, server := pair(t)
	sent := make([]byte, 8<<20)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	var wg sync.WaitGroup
	for _, c := range []net.Conn{Conn(client), Conn(server)} {
		wg.Go(func() {
			if n, err := c.Write(sent); n != len(sent) || err != nil {
				t.Error(n, err)
			}
			if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			time.Sleep(20 * time.Millisecond) // its buffers are full
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d octets came, %v", len(got), err)
			}
		})
	}
	wg.Wait()
}

// Several write at once: what each writes stays in one piece.
func TestWritersTakeTurns(t *testing.T) {
	client, server := pair(t)
	c := Conn(client)
	const writers, each, length = 4, 50, 100_000
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range each {
				if _, err := c.Write(bytes.Repeat([]byte{byte(i)}, length)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); c.Close() }()
	s, piece := Conn(server), make([]byte, length)
	for range writers * each {
		if _, err := io.ReadFull(s, piece); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(piece, piece[:1]) != length {
			t.Fatal("a piece is of several writers")
		}
	}
	if n, err := s.Read(piece); n != 0 || err != io.EOF {
		t.Errorf("%d octets more, %v", n, err)
	}
}

// What goes wrong is told as net tells it.
func TestErrors(t *testing.T) {
	buf := make([]byte, 10)
	ports := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for name, do := range map[string]func(c net.Conn, peer *net.TCPConn) (int, error){
		"nothing to read into": func(c net.Conn, _ *net.TCPConn) (int, error) { return c.Read(nil) },
		"nothing to write":     func(c net.Conn, _ *net.TCPConn) (int, error) { return c.Write(nil) },
		"end":                  func(c net.Conn, peer *net.TCPConn) (int, error) { peer.Close(); return c.Read(buf) },
		"read in time": func(c net.Conn, peer *net.TCPConn) (int, error) {
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
			time.AfterFunc(20*time.Millisecond, func() { peer.Write([]byte("abc")) })
			return c.Read(buf)
		},
		"read too late": func(c net.Conn, _ *net.TCPConn) (int, error) {
			c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			return c.Read(buf)
		},
		"read after the deadline": func(c net.Conn, peer *net.TCPConn) (int, error) {
			peer.Write([]byte("abc"))
			time.Sleep(20 * time.Millisecond)
			c.SetReadDeadline(time.Unix(1, 0))
			return c.Read(buf)
		},
		"write too late": func(c net.Conn, _ *net.TCPConn) (int, error) {
			c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			_, err := c.Write(make([]byte, 64<<20))
			return 0, err // how much went is chance
		},
		"closed":             func(c net.Conn, _ *net.TCPConn) (int, error) { c.Close(); return c.Read(buf) },
		"closed and written": func(c net.Conn, _ *net.TCPConn) (int, error) { c.Close(); return c.Write(buf) },
		"closed while it waits": func(c net.Conn, _ *net.TCPConn) (int, error) {
			time.AfterFunc(20*time.Millisecond, func() { c.Close() })
			return c.Read(buf)
		},
		"reset": func(c net.Conn, peer *net.TCPConn) (int, error) {
			peer.SetLinger(0)
			peer.Close()
			return c.Read(buf)
		},
		"write after reset": func(c net.Conn, peer *net.TCPConn) (int, error) {
			peer.SetLinger(0)
			peer.Close()
			c.Read(buf)
			return c.Write(buf)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told [2]string
			for i, kind := range []func(*net.TCPConn) net.Conn{plain, ours} {
				client, server := pair(t)
				c := kind(client)
				n, err := do(c, server)
				var timeout net.Error
				told[i] = "nothing"
				if err != nil {
					told[i] = ports.ReplaceAllString(err.Error(), "PEER")
				}
				if told[i] += " of " + string(rune('0'+n)); errors.As(err, &timeout) && timeout.Timeout() {
					told[i] += ", timeout"
				}
				if errors.Is(err, net.ErrClosed) {
					told[i] += ", closed"
				}
			}
			if told[0] != told[1] {
				t.Errorf("told %q, net tells %q", told[1], told[0])
			}
		})
	}
}

func BenchmarkExchange(b *testing.B) {
	for name, kind := range map[string]func(*net.TCPConn) net.Conn{"net": plain, "nonblock": ours} {
		b.Run(name, func(b *testing.B) {
			client, server := pair(b)
			s := kind(server)
			go func() {
				buf := make([]byte, 512)
				for {
					n, err := s.Read(buf)
					if err != nil {
						return
					}
					s.Write(buf[:n])
				}
			}()
			c, buf := kind(client), make([]byte, 40)
			b.ReportAllocs()
			for b.Loop() {
				c.Write(buf)
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
			client.Close()
		})
	}
}
