//go:build !nogrpc

package dnsserver

import (
	"context"
	"net"
	"testing"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/mocktracer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// TestGRPCWithoutSocket calls the service as others may do.
func TestGRPCWithoutSocket(t *testing.T) {
	s, err := NewServergRPC("grpc://127.0.0.1:0", []*Config{blockFor(t, "grpc", new(laneHandler))})
	if err != nil {
		t.Fatal(err)
	}
	in := &pb.DnsPacket{Msg: packed(t, query("www."))}
	if _, err := s.Query(t.Context(), in); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	tcp := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}})
	out, err := s.Query(tcp, in)
	if m := new(dns.Msg); err != nil || m.Unpack(out.GetMsg()) != nil || len(m.Answer) != 1 {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestGRPCPlain(t *testing.T) {
	cfg := blockFor(t, "grpc", new(laneHandler))
	cfg.TLSConfig = nil
	s := serving(t, cfg)
	if r, err := clients.DialGRPC(t, s.addr, insecure.NewCredentials()).Ask(query("www.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestGRPCStops(t *testing.T) {
	g := newGate(t)
	s := serving(t, blockFor(t, "grpc", g))
	dial(t, s.addr) // is not waited for
	c := clients.Connect(t, "grpc", s.addr)
	done := make(chan error)
	go func() {
		_, err := c.Ask(query("slow."))
		done <- err
	}()
	g.holds(t, 1)
	ended := stopping(t, s.base())
	g.open()
	ended()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// lateTracing is a handler that has a tracer from some time on. Nobody may ask it before.
type lateTracing struct {
	handler
	tracer *mocktracer.MockTracer
}

func (h *lateTracing) Tracer() ot.Tracer {
	if h.tracer == nil {
		panic("asked for a tracer before there is one")
	}
	return h.tracer
}

// TestGRPCSpan has calls go on with traces where a plugin of the server has a tracer. Plugins of others make it when they
// start, which is after the servers are made, and have none to tell before.
func TestGRPCSpan(t *testing.T) {
	tracer := mocktracer.New()
	within := make(chan bool, 1)
	h := &lateTracing{handler: handler{"traced", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		within <- ot.SpanFromContext(ctx) != nil
		return echo.serve(ctx, w, r)
	}}}
	cfg := blockFor(t, "grpc", h)
	made, err := makeServer("grpc://127.0.0.1:0", []*Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	h.tracer = tracer
	if got := made.base().Tracer(); got != tracer {
		t.Errorf("the tracer of the server is %v", got)
	}
	s := servingMade(t, made)
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	headers := ot.TextMapCarrier{}
	if err := tracer.Inject(tracer.StartSpan("parent").Context(), ot.TextMap, headers); err != nil {
		t.Fatal(err)
	}
	ctx := metadata.NewOutgoingContext(t.Context(), metadata.New(headers))
	if _, err := c.Query(ctx, &pb.DnsPacket{Msg: packed(t, query("www."))}); err != nil {
		t.Fatal(err)
	}
	if !<-within {
		t.Error("not in a span")
	}
}
