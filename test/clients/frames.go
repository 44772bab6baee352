package clients

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// FrameClient is a client of DNS over TCP or TLS.
type FrameClient struct {
	Conn   net.Conn
	Frames chan []byte // gets what comes, if not nil

	mu    sync.Mutex
	next  uint16
	open  map[uint16]chan *dns.Msg
	err   error
	ended chan struct{} // closed when err is set
}

// DialFrames connects to a server of dns:// or, with a configuration, of tls://.
func DialFrames(t testing.TB, addr string, conf *tls.Config) *FrameClient {
	t.Helper()
	c, err := NewFrames(addr, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// NewFrames is DialFrames for who closes the client himself.
func NewFrames(addr string, conf *tls.Config) (*FrameClient, error) {
	conn, err := net.DialTimeout("tcp", addr, AskTime)
	if err != nil {
		return nil, err
	}
	if conf != nil {
		conn = tls.Client(conn, conf)
	}
	c := &FrameClient{Conn: conn, open: map[uint16]chan *dns.Msg{}, ended: make(chan struct{})}
	go c.read()
	return c, nil
}

// Close closes the connection.
func (c *FrameClient) Close() { c.Conn.Close() }

// Closed reports whether the server has closed the connection, as far as the client knows.
func (c *FrameClient) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// Dials is 1.
func (c *FrameClient) Dials() int { return 1 }

func (c *FrameClient) read() {
	for {
		b, err := ReadFrame(c.Conn)
		m := new(dns.Msg)
		if err == nil {
			err = m.Unpack(b)
		}
		c.mu.Lock()
		if err == nil && c.Frames != nil {
			c.Frames <- b
		}
		if err != nil {
			c.err = err
			for id, ch := range c.open {
				close(ch)
				delete(c.open, id)
			}
			c.mu.Unlock()
			close(c.ended)
			return
		}
		ch := c.open[m.Id]
		delete(c.open, m.Id)
		if ch != nil {
			ch <- m
		}
		c.mu.Unlock()
	}
}

// ReadFrame reads a message with its length before it.
func ReadFrame(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// Ask implements Client.
func (c *FrameClient) Ask(m *dns.Msg) (*dns.Msg, error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, c.err
	}
	ch := make(chan *dns.Msg, 1)
	id := c.next
	c.next++
	c.open[id] = ch
	asked := m.Id
	m.Id = id
	b, err := m.Pack()
	m.Id = asked
	if err == nil {
		_, err = c.Conn.Write(Frame(b))
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case r, ok := <-ch:
		if !ok {
			return nil, fmt.Errorf("connection: %w", c.err)
		}
		r.Id = asked
		return r, nil
	case <-time.After(AskTime):
		return nil, ErrTimeout
	}
}

// Raw implements Client.
func (c *FrameClient) Raw(b []byte) ([]byte, error) {
	c.mu.Lock()
	c.Frames = make(chan []byte, 1)
	c.mu.Unlock()
	if _, err := c.Conn.Write(Frame(b)); err != nil {
		return nil, err
	}
	select {
	case got := <-c.Frames:
		return got, nil
	case <-c.ended:
		return nil, fmt.Errorf("connection: %w", c.err)
	case <-time.After(AskTime):
		return nil, ErrTimeout
	}
}
