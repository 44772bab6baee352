package clients

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/coredns/coredns/pb"
)

// GRPCClient is a client of DNS over gRPC.
type GRPCClient struct {
	pb.DnsServiceClient
	conn  *grpc.ClientConn
	dials atomic.Int32
}

// DialGRPC makes a client for a server of grpc://.
func DialGRPC(t testing.TB, addr string, creds credentials.TransportCredentials) *GRPCClient {
	t.Helper()
	c := new(GRPCClient)
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		c.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds), grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	c.conn, c.DnsServiceClient = conn, pb.NewDnsServiceClient(conn)
	t.Cleanup(c.Close)
	return c
}

// Close closes the connection.
func (c *GRPCClient) Close() { c.conn.Close() }

// Dials implements Client.
func (c *GRPCClient) Dials() int { return int(c.dials.Load()) }

// Ask implements Client.
func (c *GRPCClient) Ask(m *dns.Msg) (*dns.Msg, error) {
	b, err := m.Pack()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), AskTime)
	defer cancel()
	out, err := c.Query(ctx, &pb.DnsPacket{Msg: b})
	if err != nil {
		return nil, err
	}
	r := new(dns.Msg)
	return r, r.Unpack(out.GetMsg())
}

// Raw implements Client.
func (c *GRPCClient) Raw(b []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), AskTime)
	defer cancel()
	out, err := c.Query(ctx, &pb.DnsPacket{Msg: b})
	return out.GetMsg(), err
}
