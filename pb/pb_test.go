package pb_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/coredns/coredns/pb"
)

// echo sends every message back.
type echo struct {
	pb.UnimplementedDnsServiceServer
}

func (echo) Query(_ context.Context, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	return &pb.DnsPacket{Msg: in.GetMsg()}, nil
}

// idle has no method of its own.
type idle struct {
	pb.UnimplementedDnsServiceServer
}

// client starts a server and returns a client for it.
func client(t *testing.T, srv pb.DnsServiceServer) (pb.DnsServiceClient, grpc.ClientConnInterface) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterDnsServiceServer(s, srv)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pb.NewDnsServiceClient(conn), conn
}

func TestQuery(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, conn := client(t, echo{})
	msg := bytes.Repeat([]byte{0, 1, 0xff}, 20000)
	out, err := c.Query(ctx, &pb.DnsPacket{Msg: msg})
	if err != nil || !bytes.Equal(out.GetMsg(), msg) {
		t.Errorf("got %d octets, %v", len(out.GetMsg()), err)
	}

	// The names by which servers of other makes know the service.
	out = new(pb.DnsPacket)
	err = conn.Invoke(ctx, "/coredns.dns.DnsService/Query", &pb.DnsPacket{Msg: msg}, out)
	if err != nil || !bytes.Equal(out.GetMsg(), msg) {
		t.Errorf("by name: got %d octets, %v", len(out.GetMsg()), err)
	}
}

func TestUnimplemented(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, _ := client(t, idle{})
	if _, err := c.Query(ctx, new(pb.DnsPacket)); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func TestWireForm(t *testing.T) {
	b, err := proto.Marshal(&pb.DnsPacket{Msg: []byte{1, 2, 3}})
	if want := []byte{1<<3 | 2, 3, 1, 2, 3}; err != nil || !bytes.Equal(b, want) {
		t.Errorf("got %x, %v, want %x", b, err, want)
	}
	if name := new(pb.DnsPacket).ProtoReflect().Descriptor().FullName(); name != "coredns.dns.DnsPacket" {
		t.Errorf("got %s", name)
	}
}
