package dnsserver

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/mocktracer"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

func code(err error) codes.Code { return status.Code(err) }

func TestGRPCCodes(t *testing.T) {
	stuck := handler{"stuck", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		switch r.Question[0].Name {
		case "wait.":
			<-ctx.Done()
			return 0, ctx.Err()
		case "drop.":
			return 0, nil
		}
		return echo.serve(ctx, w, r)
	}}
	cfg := blockFor(t, "grpc", stuck)
	most := 1000
	cfg.Limits.QueryBytes = &most
	s := serving(t, cfg)
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	reply := query("www.")
	reply.Response = true
	long := packed(t, query(strings.Repeat("a.", 100)))
	for name, tc := range map[string]struct {
		in   []byte
		want codes.Code
		text string
	}{
		"good":       {packed(t, query("www.")), codes.OK, ""},
		"nothing":    {nil, codes.InvalidArgument, "unpacking a query"},
		"garbage":    {[]byte("garbage"), codes.InvalidArgument, "unpacking a query"},
		"a reply":    {packed(t, reply), codes.InvalidArgument, "dns request rejected"},
		"too long":   {append(long, make([]byte, 1001-len(long))...), codes.ResourceExhausted, "dns message exceeds size limit: 1001"},
		"far longer": {make([]byte, 65540), codes.ResourceExhausted, ""},
		"dropped":    {packed(t, query("drop.")), codes.Unavailable, "the query was dropped"},
		"too late":   {packed(t, query("wait.")), codes.DeadlineExceeded, ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		out, err := c.Query(ctx, &pb.DnsPacket{Msg: tc.in})
		cancel()
		if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.text) || (err == nil) != (len(out.GetMsg()) > 0) {
			t.Errorf("%s: got %v, %v", name, out, err)
		}
	}
}

// deadlines tells the deadlines that it is given.
type deadlines struct{ seen chan time.Time }

func (d *deadlines) Name() string             { return "deadlines" }
func (d *deadlines) WireSelf() plugin.Handler { return d }

func (d *deadlines) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	end, _ := ctx.Deadline()
	d.seen <- end
	return echo.serve(ctx, w, r)
}

func (d *deadlines) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if wire.FirstLabel(q.Lower())[0] == 'u' {
		return wire.Unpack
	}
	d.seen <- q.Deadline()
	w.Begin(q)
	return wire.Done
}

// TestGRPCDeadline has the deadline of a call reach plugins in both lanes, and that call alone.
func TestGRPCDeadline(t *testing.T) {
	h := &deadlines{make(chan time.Time, 1)}
	s, err := NewServergRPC("grpc://127.0.0.1:0", []*Config{blockFor(t, "grpc", h)})
	if err != nil {
		t.Fatal(err)
	}
	tcp := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}})
	late, cancel := context.WithTimeout(tcp, time.Minute)
	defer cancel()
	for _, name := range []string{"wire.", "unpack."} {
		for _, ctx := range []context.Context{late, tcp} {
			if _, err := s.Query(ctx, &pb.DnsPacket{Msg: packed(t, query(name))}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			want, _ := ctx.Deadline()
			if got := <-h.seen; !got.Equal(want) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
	}
}

// TestGRPCWithoutSocket calls the service as others may do.
func TestGRPCWithoutSocket(t *testing.T) {
	s, err := NewServergRPC("grpc://127.0.0.1:0", []*Config{blockFor(t, "grpc", new(laneHandler))})
	if err != nil {
		t.Fatal(err)
	}
	in := &pb.DnsPacket{Msg: packed(t, query("www."))}
	if _, err := s.Query(t.Context(), in); code(err) != codes.Internal || !strings.Contains(err.Error(), "no peer in gRPC context") {
		t.Errorf("got %v", err)
	}
	udp := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UDPAddr{}})
	if _, err := s.Query(udp, in); code(err) != codes.Internal || !strings.Contains(err.Error(), "no TCP peer") {
		t.Errorf("got %v", err)
	}
	tcp := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}})
	out, err := s.Query(tcp, in)
	if m := new(dns.Msg); err != nil || m.Unpack(out.GetMsg()) != nil || len(m.Answer) != 1 {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestGRPCConnections(t *testing.T) {
	g := newGate(t)
	cfg := blockFor(t, "grpc", g)
	most := 3
	cfg.MaxGRPCConnections = &most
	s := serving(t, cfg)
	busy := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := clients.Connect(t, "grpc", s.addr).Ask(query("slow."))
			busy <- err
		}()
	}
	g.holds(t, 2)
	for range 10 {
		dial(t, s.addr)
	}
	if _, err := clients.Connect(t, "grpc", s.addr).Ask(query("www.")); err != nil {
		t.Error(err)
	}
	g.open()
	for range 2 {
		if err := <-busy; err != nil {
			t.Errorf("a connection at work was closed: %v", err)
		}
	}
}

// TestGRPCSlowMessage has a call whose message does not come.
func TestGRPCSlowMessage(t *testing.T) {
	cfg := blockFor(t, "grpc", new(laneHandler))
	cfg.ReadTimeout = 500 * time.Millisecond
	s := serving(t, cfg)
	before := limitedTo(s, "read_time")
	begin := time.Now()
	p := unspokenH2(t, s.addr)
	p.conn.Write([]byte(http2.ClientPreface))
	p.framer.WriteSettings()
	p.framer.WriteSettingsAck()
	p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.open(1, false, ":method", "POST", ":scheme", "https", ":path", "/coredns.dns.DnsService/Query", ":authority", "a", "content-type", "application/grpc", "te", "trailers")
	p.framer.WriteData(1, false, []byte{0, 0, 0})
	for {
		f := p.until()
		if h, ok := f.(*http2.MetaHeadersFrame); ok && h.StreamEnded() {
			break
		}
		if _, ok := f.(*http2.RSTStreamFrame); ok {
			break
		}
	}
	if !since(begin, 500*time.Millisecond) || limitedTo(s, "read_time") != before+1 {
		t.Errorf("after %v, counted %d", time.Since(begin), limitedTo(s, "read_time")-before)
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
	silent, err := net.Dial("tcp", s.addr) // is not waited for
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
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

// tracing is a handler with a tracer.
type tracing struct {
	handler
	tracer ot.Tracer
}

func (h tracing) Tracer() ot.Tracer { return h.tracer }

// TestGRPCSpan has a call go on with the trace that its client has begun, and begin none of its own.
func TestGRPCSpan(t *testing.T) {
	tracer := mocktracer.New()
	within := make(chan bool, 1)
	h := tracing{handler{"traced", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		within <- ot.SpanFromContext(ctx) != nil
		return echo.serve(ctx, w, r)
	}}, tracer}
	var _ plugin.Handler = h
	s := serving(t, blockFor(t, "grpc", h))
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	parent := tracer.StartSpan("parent")
	headers := ot.TextMapCarrier{}
	if err := tracer.Inject(parent.Context(), ot.HTTPHeaders, ot.HTTPHeadersCarrier{}); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Inject(parent.Context(), ot.TextMap, headers); err != nil {
		t.Fatal(err)
	}
	in := &pb.DnsPacket{Msg: packed(t, query("www."))}
	for _, sent := range []bool{false, true} {
		ctx := t.Context()
		if sent {
			ctx = metadata.NewOutgoingContext(ctx, metadata.New(headers))
		}
		if _, err := c.Query(ctx, in); err != nil {
			t.Fatal(err)
		}
		if got := <-within; got != sent {
			t.Errorf("in a span: %t, want %t", got, sent)
		}
	}
	spans := tracer.FinishedSpans()
	if len(spans) != 1 || spans[0].OperationName != "/coredns.dns.DnsService/Query" || spans[0].ParentID != parent.Context().(mocktracer.MockSpanContext).SpanID {
		t.Errorf("got %v", spans)
	}
}
