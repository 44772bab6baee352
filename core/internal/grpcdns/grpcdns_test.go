package grpcdns

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/mocktracer"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

func TestAnswers(t *testing.T) {
	for how, config := range map[string]*tls.Config{"plain": nil, "TLS": tlsConfig(t)} {
		s := serve(t, serviceFor(t, new(coretest.Lane), config, nil))
		creds := insecure.NewCredentials()
		if config != nil {
			creds = credentials.NewTLS(clients.Trusting)
		}
		c := clients.DialGRPC(t, s.addr, creds)
		for name, want := range map[string]string{
			"www.":    "NOERROR 192.0.2.1",
			"unpack.": "NOERROR 192.0.2.3",
			"block.":  "NOERROR 192.0.2.2",
			"park.":   "NOERROR 192.0.2.2",
			"fail.":   "REFUSED",
			"panic.":  "SERVFAIL",
			"local.":  "NOERROR 127.0.0.1",
			"client.": "NOERROR 127.0.0.1",
		} {
			r, err := c.Ask(coretest.Query(name))
			if err != nil || coretest.Describe(r) != want || r.Question[0].Name != name {
				t.Errorf("%s, %s: got %s, %v, want %s", how, name, coretest.Describe(r), err, want)
			}
		}
		if r, err := c.Ask(coretest.Query("long.")); err != nil || len(r.Answer) != 200 || r.Truncated {
			t.Errorf("%s, long: %v, %v", how, r, err)
		}
	}
}

// Idle connections give way; those at work do not.
func TestConnections(t *testing.T) {
	g := coretest.NewGate(t)
	of := serviceFor(t, g, tlsConfig(t), nil)
	of.Connections = 3
	s := serve(t, of)
	busy := make(chan error, 2)
	for range 2 {
		c := clients.Connect(t, "grpc", s.addr)
		go func() {
			_, err := c.Ask(coretest.Query("slow."))
			busy <- err
		}()
	}
	g.Holds(t, 2)
	for range 3 {
		coretest.Dial(t, s.addr)
	}
	if _, err := clients.Connect(t, "grpc", s.addr).Ask(coretest.Query("www.")); err != nil {
		t.Error(err)
	}
	g.Open()
	for range 2 {
		if err := <-busy; err != nil {
			t.Errorf("a connection at work was closed: %v", err)
		}
	}
	if n := coretest.Limited(of, "connections"); n == 0 {
		t.Error("not counted")
	}
}

// TestSlowMessage has a call whose message does not come.
func TestSlowMessage(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane), tlsConfig(t), nil)
	of.Read = 500 * time.Millisecond
	s := serve(t, of)
	begin := time.Now()
	p := coretest.DialH2(t, s.addr)
	io.WriteString(p.Conn, http2.ClientPreface)
	p.Framer.WriteSettings()
	p.Framer.WriteSettingsAck()
	p.Open(1, false, ":method", "POST", ":scheme", "https", ":path", "/coredns.dns.DnsService/Query", ":authority", "a",
		"content-type", "application/grpc", "te", "trailers")
	p.Framer.WriteData(1, false, []byte{0, 0, 0})
	for ended := false; !ended; {
		switch f := p.Until().(type) {
		case *http2.MetaHeadersFrame:
			ended = f.StreamEnded()
		case *http2.RSTStreamFrame:
			ended = true
		}
	}
	if !coretest.Since(begin, of.Read) || coretest.Limited(of, "read_time") != 1 {
		t.Errorf("after %v, counted %d", time.Since(begin), coretest.Limited(of, "read_time"))
	}
	eventually.Holds(t, "none is open", func() bool { return open() == 0 && calls.Load() == 0 })
	// One whose message came is not counted.
	if _, err := clients.Connect(t, "grpc", s.addr).Ask(coretest.Query("www.")); err != nil {
		t.Error(err)
	}
	time.Sleep(of.Read + 100*time.Millisecond) // in which it would be
	if n := coretest.Limited(of, "read_time"); n != 1 {
		t.Errorf("counted %d", n)
	}
}

// open is how many calls are open whose messages have not come.
func open() int64 {
	readings.mu.Lock()
	defer readings.mu.Unlock()
	return int64(readings.n)
}

// Where memory has a limit, calls that are too many are refused before anything is made of them.
func TestCallsByMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 * memory.StreamsShare * memory.PerStream))
	g := coretest.NewGate(t)
	of := serviceFor(t, g, tlsConfig(t), nil)
	s := serve(t, of)
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	var slow sync.WaitGroup
	defer slow.Wait()
	defer g.Open()
	for range 2 {
		slow.Go(func() {
			if _, err := c.Query(t.Context(), packet(t, "slow.")); err != nil {
				t.Error(err)
			}
		})
	}
	eventually.Holds(t, "two are open", func() bool { return calls.Load() == 2 })
	if _, err := c.Query(t.Context(), packet(t, "www.")); code(err) != codes.ResourceExhausted || coretest.Limited(of, "waiting") != 1 {
		t.Errorf("a third one: %v, counted %d", err, coretest.Limited(of, "waiting"))
	}
	g.Open()
	slow.Wait()
	eventually.Holds(t, "none is", func() bool { return calls.Load() == 0 })
	if _, err := c.Query(t.Context(), packet(t, "www.")); err != nil {
		t.Error(err)
	}
}

// Of calls whose messages do not come there are fewer, as each may have nearly all of one.
func TestReadingsByMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(readingShare * 20 * memory.StreamsShare * memory.PerStream))
	of := serviceFor(t, new(coretest.Lane), tlsConfig(t), nil)
	of.Read = time.Hour
	s := serve(t, of)
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	p := coretest.DialH2(t, s.addr)
	io.WriteString(p.Conn, http2.ClientPreface)
	p.Framer.WriteSettings()
	p.Framer.WriteSettingsAck()
	for i := range uint32(20) {
		if _, err := c.Query(t.Context(), packet(t, "www.")); err != nil {
			t.Fatalf("with %d whose messages do not come: %v", i, err)
		}
		p.Open(2*i+1, false, ":method", "POST", ":scheme", "https", ":path", "/coredns.dns.DnsService/Query", ":authority", "a",
			"content-type", "application/grpc", "te", "trailers")
		eventually.Holds(t, "it is open", func() bool { return open() == int64(i)+1 })
	}
	// All of them have just come, and will have for an hour.
	aged := func(by time.Duration) {
		readings.mu.Lock()
		defer readings.mu.Unlock()
		for r := readings.first; r != nil; r = r.next {
			r.since = r.since.Add(by)
		}
	}
	aged(time.Hour)
	if _, err := c.Query(t.Context(), packet(t, "www.")); code(err) != codes.ResourceExhausted || coretest.Limited(of, "waiting") != 1 {
		t.Errorf("with 20: %v, counted %d", err, coretest.Limited(of, "waiting"))
	}
	// Others are not kept out by them for longer: the oldest one gives way.
	aged(-time.Hour - readingTime)
	if _, err := c.Query(t.Context(), packet(t, "www.")); err != nil || coretest.Limited(of, "waiting") != 2 {
		t.Errorf("with 20 old ones: %v, counted %d", err, coretest.Limited(of, "waiting"))
	}
	for ended := uint32(0); ended == 0; {
		switch f := p.Until().(type) {
		case *http2.MetaHeadersFrame:
			ended = f.StreamID
		case *http2.RSTStreamFrame:
			ended = f.StreamID
		}
		if ended > 1 {
			t.Errorf("stream %d ended, want the first", ended)
		}
	}
	p.Conn.Close()
	eventually.Holds(t, "none is open", func() bool { return open() == 0 })
	if _, err := c.Query(t.Context(), packet(t, "www.")); err != nil {
		t.Error(err)
	}
}

// Nothing is kept of a call that its client takes back at once: there may be many in the time that a message has.
func TestCallTakenBack(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane), tlsConfig(t), nil)
	of.Read = time.Hour
	transport := New(of)
	defer transport.Stop(t.Context())
	type key struct{}
	gone := make(chan struct{})
	func() {
		call := new([1 << 10]byte)
		runtime.AddCleanup(call, func(gone chan struct{}) { close(gone) }, gone)
		ctx, takeBack := context.WithCancel(context.WithValue(context.Background(), key{}, call))
		if _, err := transport.limitReading(ctx, nil); err != nil {
			t.Error(err)
		}
		takeBack()
	}()
	eventually.Holds(t, "the call is gone", func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

// Who reads calls that are taken back at once lets others run, which end them, before they are too many.
func TestCallsTakenBack(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i := range 100_000 {
		ctx, takeBack := context.WithCancel(context.Background())
		if !enter(ctx, 1000) {
			t.Fatalf("call %d is one of a thousand that are open", i)
		}
		takeBack()
	}
	eventually.Holds(t, "none is open", func() bool { return calls.Load() == 0 })
}

// A call whose message has come takes its time; and a connection that has ended leaves its place.
func TestPlaces(t *testing.T) {
	g := coretest.NewGate(t)
	of := serviceFor(t, g, tlsConfig(t), nil)
	of.Connections, of.Read = 1, 100*time.Millisecond
	s := serve(t, of)
	c := clients.Connect(t, "grpc", s.addr)
	time.AfterFunc(3*of.Read, g.Open)
	if _, err := c.Ask(coretest.Query("slow.")); err != nil || coretest.Limited(of, "read_time") != 0 {
		t.Errorf("%v, counted %d", err, coretest.Limited(of, "read_time"))
	}
	if !s.admission.Full() {
		t.Error("the connection has no place")
	}
	c.Close()
	eventually.Holds(t, "its place is free", func() bool { return !s.admission.Full() })
}

// The end waits for calls at work, but not for clients that say nothing.
func TestStop(t *testing.T) {
	for _, leaving := range []bool{false, true} {
		g := coretest.NewGate(t)
		of := serviceFor(t, g, tlsConfig(t), nil)
		of.Leaving.Store(leaving)
		s := serve(t, of)
		coretest.Dial(t, s.addr)
		c := clients.Connect(t, "grpc", s.addr)
		done := make(chan error)
		go func() {
			_, err := c.Ask(coretest.Query("slow."))
			done <- err
		}()
		g.Holds(t, 1)
		ended := coretest.Stopping(t, s.end)
		g.Open()
		ended()
		if err := <-done; err != nil {
			t.Errorf("leaving %v: %v", leaving, err)
		}
	}
}

// It does not wait longer than it may.
func TestStopGivesUp(t *testing.T) {
	began, cancelled := make(chan struct{}, 1), make(chan error, 1)
	of := serviceFor(t, coretest.UntilCancelled(began, cancelled), tlsConfig(t), nil)
	from := coretest.ListenTCP(t)
	g := New(of)
	g.ListenOn(from)
	served := make(chan error)
	go func() { served <- g.Serve(from) }()
	c := clients.Connect(t, "grpc", from.Addr().String())
	done := make(chan error)
	go func() {
		_, err := c.Ask(coretest.Query("www."))
		done <- err
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := g.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-cancelled
	if err := <-done; err == nil {
		t.Error("was answered")
	}
	if err := <-served; err != nil {
		t.Errorf("serving ended with %v", err)
	}
}

// In a reload the next server goes on with the connections: calls belong to the one with which they began.
func TestNextServerTakesOver(t *testing.T) {
	first, second := coretest.NewGate(t), coretest.NewGate(t)
	of, next := serviceFor(t, first, tlsConfig(t), nil), serviceFor(t, second, tlsConfig(t), nil)
	s := serve(t, of)
	c := clients.Connect(t, "grpc", s.addr)
	done := make(chan error)
	asked := func() {
		_, err := c.Ask(coretest.Query("slow."))
		done <- err
	}
	go asked()
	first.Holds(t, 1)
	if !s.Fits(next) {
		t.Error("does not fit")
	}
	s.Transport.Sit(next)
	from := coretest.ListenTCP(t)
	s.ListenOn(from)
	served := make(chan error)
	go func() { served <- s.Transport.Serve(from) }()
	go asked()
	second.Holds(t, 1)
	if _, err := net.Dial("tcp", s.addr); err == nil {
		t.Error("the first one's listener is still there")
	}
	second.Open()
	if err := <-done; err != nil {
		t.Error(err)
	}
	over, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := of.LetGo(over, []service.Heirloom{s.Transport}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its call is not over: %v", err)
	}
	first.Open()
	if err := <-done; err != nil || c.Dials() != 1 {
		t.Errorf("%v, on connection %d", err, c.Dials())
	}
	if err := of.LetGo(t.Context(), []service.Heirloom{s.Transport}); err != nil {
		t.Error(err)
	}
	if _, err := clients.Connect(t, "grpc", from.Addr().String()).Ask(coretest.Query("www.")); err != nil {
		t.Error(err)
	}
	s.end()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// What the library was told once must stay the same.
func TestFits(t *testing.T) {
	plain := func() *service.Service { return serviceFor(t, coretest.Echo, nil, nil) }
	encrypted := func() *service.Service { return serviceFor(t, coretest.Echo, tlsConfig(t), nil) }
	changed := func(change func(*service.Service)) *service.Service {
		s := plain()
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		a, b *service.Service
		want bool
	}{
		"same":        {plain(), plain(), true},
		"same TLS":    {encrypted(), encrypted(), true},
		"other times": {plain(), changed(func(s *service.Service) { s.Read = time.Hour }), true},
		"TLS":         {plain(), encrypted(), false},
		"traced":      {plain(), serviceFor(t, coretest.Echo, nil, mocktracer.New()), false},
		"streams":     {plain(), changed(func(s *service.Service) { s.Streams++ }), false},
		"header":      {plain(), changed(func(s *service.Service) { s.HeaderBytes++ }), false},
		"handshake":   {plain(), changed(func(s *service.Service) { s.Handshake++ }), false},
	} {
		g := New(tc.a)
		if got := g.Fits(tc.b); got != tc.want || g.Holds(tc.a) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestSpan has a call go on with the trace that its client has begun, and begin none of its own.
func TestSpan(t *testing.T) {
	tracer := mocktracer.New()
	within := make(chan bool, 1)
	of := serviceFor(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		within <- ot.SpanFromContext(ctx) != nil
		return coretest.Echo(ctx, w, r)
	}), tlsConfig(t), tracer)
	s := serve(t, of)
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	parent := tracer.StartSpan("parent")
	headers := ot.TextMapCarrier{}
	if err := tracer.Inject(parent.Context(), ot.TextMap, headers); err != nil {
		t.Fatal(err)
	}
	for _, sent := range []bool{false, true} {
		ctx := t.Context()
		if sent {
			ctx = metadata.NewOutgoingContext(ctx, metadata.New(headers))
		}
		if _, err := c.Query(ctx, packet(t, "www.")); err != nil {
			t.Fatal(err)
		}
		if got := <-within; got != sent {
			t.Errorf("in a span: %t, want %t", got, sent)
		}
	}
	ctx := metadata.NewOutgoingContext(t.Context(), metadata.New(headers))
	if _, err := c.Query(ctx, &pb.DnsPacket{Msg: []byte("garbage")}); code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
	eventually.Holds(t, "both spans are over", func() bool { return len(tracer.FinishedSpans()) == 2 })
	for i, span := range tracer.FinishedSpans() {
		mother := parent.Context().(mocktracer.MockSpanContext).SpanID
		if span.OperationName != "/coredns.dns.DnsService/Query" || span.ParentID != mother || (span.Tag("error") == true) != (i == 1) {
			t.Errorf("got %v", span)
		}
	}
}

// Metadata are read one by one, until the reader has enough.
func TestCarrier(t *testing.T) {
	c := carrier{"a": {"1", "2"}, "b": {"3"}}
	n := 0
	if err := c.ForeachKey(func(string, string) error { n++; return nil }); err != nil || n != 3 {
		t.Errorf("%d values, %v", n, err)
	}
	enough := errors.New("enough")
	if err := c.ForeachKey(func(string, string) error { return enough }); err != enough {
		t.Errorf("got %v", err)
	}
}
