package dnsserver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/doh"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// client asks one server, on one connection where there are connections. Any goroutine may use it.
type client interface {
	ask(m *dns.Msg) (*dns.Msg, error)
	close()
}

const askTime = 5 * time.Second

var errTimeout = errors.New("no answer in time")

// frameClient is a client of DNS over TCP or TLS.
type frameClient struct {
	conn net.Conn
	mu   sync.Mutex
	next uint16
	open map[uint16]chan *dns.Msg
	err  error

	frames chan []byte // gets what comes, if not nil
}

// dialFrames connects to a server of dns:// or, with a configuration, of tls://.
func dialFrames(t testing.TB, addr string, conf *tls.Config) *frameClient {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, askTime)
	if err != nil {
		t.Fatal(err)
	}
	if conf != nil {
		conn = tls.Client(conn, conf)
	}
	c := &frameClient{conn: conn, open: map[uint16]chan *dns.Msg{}}
	go c.read()
	t.Cleanup(c.close)
	return c
}

var trusting = &tls.Config{InsecureSkipVerify: true}

func (c *frameClient) close() { c.conn.Close() }

func (c *frameClient) read() {
	for {
		b, err := readFrame(c.conn)
		m := new(dns.Msg)
		if err == nil {
			err = m.Unpack(b)
		}
		c.mu.Lock()
		if err == nil && c.frames != nil {
			c.frames <- b
		}
		if err != nil {
			c.err = err
			for id, ch := range c.open {
				close(ch)
				delete(c.open, id)
			}
			c.mu.Unlock()
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

// readFrame reads a message with its length before it.
func readFrame(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

func (c *frameClient) ask(m *dns.Msg) (*dns.Msg, error) {
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
		_, err = c.conn.Write(AddPrefix(b))
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
	case <-time.After(askTime):
		return nil, errTimeout
	}
}

// httpClient is a client of DNS over HTTP.
type httpClient struct {
	t      testing.TB
	client *http.Client
	url    string
	method string
	end    func()
}

func (c *httpClient) close() { c.end() }

func (c *httpClient) ask(m *dns.Msg) (*dns.Msg, error) {
	req, err := doh.NewRequest(c.method, c.url, "", m)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	return doh.ResponseToMsg(resp)
}

func dialHTTP(t testing.TB, addr, method string, version int) *httpClient {
	tr := &http.Transport{TLSClientConfig: trusting.Clone(), ForceAttemptHTTP2: version == 2}
	if version == 1 {
		tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	c := &httpClient{t, &http.Client{Transport: tr, Timeout: askTime}, "https://" + addr, method, tr.CloseIdleConnections}
	t.Cleanup(c.close)
	return c
}

// quicClient is a client of DNS over QUIC.
type quicClient struct{ conn *quic.Conn }

func dialQUIC(t testing.TB, addr string) *quicClient {
	t.Helper()
	conf := trusting.Clone()
	conf.NextProtos = []string{"doq"}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	conn, err := quic.DialAddr(ctx, addr, conf, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &quicClient{conn}
	t.Cleanup(c.close)
	return c
}

func (c *quicClient) close() { c.conn.CloseWithError(0, "") }

func (c *quicClient) ask(m *dns.Msg) (*dns.Msg, error) {
	m = m.Copy()
	m.Id = 0
	b, err := m.Pack()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	stream, err := c.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	stream.SetDeadline(time.Now().Add(askTime))
	if _, err := stream.Write(AddPrefix(b)); err != nil {
		return nil, err
	}
	stream.Close()
	b, err = readFrame(stream)
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

func dialHTTP3(t testing.TB, addr, method string) *httpClient {
	tr := &http3.Transport{TLSClientConfig: trusting.Clone()}
	c := &httpClient{t, &http.Client{Transport: tr, Timeout: askTime}, "https://" + addr, method, func() { tr.Close() }}
	t.Cleanup(c.close)
	return c
}

// grpcClient is a client of DNS over gRPC.
type grpcClient struct {
	conn *grpc.ClientConn
	pb.DnsServiceClient
}

func dialGRPC(t testing.TB, addr string, creds credentials.TransportCredentials) *grpcClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	c := &grpcClient{conn, pb.NewDnsServiceClient(conn)}
	t.Cleanup(c.close)
	return c
}

func (c *grpcClient) close() { c.conn.Close() }

func (c *grpcClient) ask(m *dns.Msg) (*dns.Msg, error) {
	b, err := m.Pack()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	out, err := c.Query(ctx, &pb.DnsPacket{Msg: b})
	if err != nil {
		return nil, err
	}
	r := new(dns.Msg)
	return r, r.Unpack(out.GetMsg())
}

// connect makes a client for a server of the scheme.
func connect(t testing.TB, scheme, addr string) client {
	t.Helper()
	switch scheme {
	case "dns":
		return dialFrames(t, addr, nil)
	case "tls":
		return dialFrames(t, addr, trusting)
	case "https", "https/2":
		return dialHTTP(t, addr, http.MethodPost, 2)
	case "https/2/get":
		return dialHTTP(t, addr, http.MethodGet, 2)
	case "https/1":
		return dialHTTP(t, addr, http.MethodPost, 1)
	case "https/1/get":
		return dialHTTP(t, addr, http.MethodGet, 1)
	case "https3":
		return dialHTTP3(t, addr, http.MethodPost)
	case "https3/get":
		return dialHTTP3(t, addr, http.MethodGet)
	case "quic":
		return dialQUIC(t, addr)
	case "grpc":
		return dialGRPC(t, addr, credentials.NewTLS(trusting))
	}
	t.Fatalf("no client for %s", scheme)
	return nil
}

// udpClient asks over UDP.
type udpClient struct{ addr string }

func (c udpClient) close() {}
func (c udpClient) ask(m *dns.Msg) (*dns.Msg, error) {
	r, _, err := (&dns.Client{Timeout: askTime, UDPSize: 65535}).Exchange(m, c.addr)
	return r, err
}
