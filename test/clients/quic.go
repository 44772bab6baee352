package clients

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// QUICClient is a client of DNS over QUIC.
type QUICClient struct{ Conn *quic.Conn }

// DialQUIC connects to a server of quic://.
func DialQUIC(t testing.TB, addr string) *QUICClient {
	t.Helper()
	c, err := NewQUIC(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// NewQUIC is DialQUIC for who closes the client himself.
func NewQUIC(addr string) (*QUICClient, error) {
	conf := Trusting.Clone()
	conf.NextProtos = []string{"doq"}
	ctx, cancel := context.WithTimeout(context.Background(), AskTime)
	defer cancel()
	conn, err := quic.DialAddr(ctx, addr, conf, nil)
	if err != nil {
		return nil, err
	}
	return &QUICClient{conn}, nil
}

// Close closes the connection.
func (c *QUICClient) Close() { c.Conn.CloseWithError(0, "") }

// Dials is 1.
func (c *QUICClient) Dials() int { return 1 }

// Ask implements Client.
func (c *QUICClient) Ask(m *dns.Msg) (*dns.Msg, error) {
	m = m.Copy()
	m.Id = 0
	b, err := m.Pack()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), AskTime)
	defer cancel()
	stream, err := c.Conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	stream.SetDeadline(time.Now().Add(AskTime))
	if _, err := stream.Write(Frame(b)); err != nil {
		return nil, err
	}
	stream.Close()
	b, err = ReadFrame(stream)
	if err != nil {
		return nil, err
	}
	r := new(dns.Msg)
	if err := r.Unpack(b); err != nil {
		return nil, err
	}
	if n, err := stream.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, fmt.Errorf("the stream goes on: %d octets, %v", n, err)
	}
	return r, nil
}

// Raw implements Client.
func (c *QUICClient) Raw(b []byte) ([]byte, error) {
	stream, err := c.Conn.OpenStream()
	if err != nil {
		return nil, err
	}
	stream.SetDeadline(time.Now().Add(AskTime))
	stream.Write(Frame(b))
	stream.Close()
	return ReadFrame(stream)
}
