package grpc

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/within"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/mocktracer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// service answers with a function.
type service struct {
	pb.UnimplementedDnsServiceServer
	answer func(*dns.Msg) (*dns.Msg, error)
	asked  atomic.Int64
	told   atomic.Value // metadata.MD of the last call
}

func (s *service) Query(ctx context.Context, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	s.asked.Add(1)
	md, _ := metadata.FromIncomingContext(ctx)
	s.told.Store(md)
	r := new(dns.Msg)
	if err := r.Unpack(in.Msg); err != nil {
		return nil, err
	}
	m, err := s.answer(r)
	if err != nil {
		return nil, err
	}
	b, err := m.Pack()
	return &pb.DnsPacket{Msg: b}, err
}

// serve starts a server for s and returns its address.
func serve(t testing.TB, network, addr string, s *service) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterDnsServiceServer(server, s)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	if network == "unix" {
		return "unix://" + addr
	}
	return l.Addr().String()
}

func says(rcode int, record string) func(*dns.Msg) (*dns.Msg, error) {
	return func(r *dns.Msg) (*dns.Msg, error) {
		m := new(dns.Msg).SetRcode(r, rcode)
		if record != "" {
			m.Answer = []dns.RR{test.A(record)}
		}
		return m, nil
	}
}

// asking is a GRPC that asks these addresses in their order.
func asking(t testing.TB, addrs ...string) *GRPC {
	t.Helper()
	g := &GRPC{zones: within.Zones{From: wire.Root}, policy: policy.Named("sequential")}
	g.zones.Except(wire.MustName("except.example.org."))
	for _, a := range addrs {
		p, err := newProxy(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.stop() })
		g.proxies = append(g.proxies, p)
	}
	return g
}

func ask(g *GRPC, name string) (*dns.Msg, int, error) {
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rcode, err := g.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(name, dns.TypeA))
	return rec.Msg, rcode, err
}

func TestReplyIsPassedOn(t *testing.T) {
	for network, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(loopback.Folder(t), "g.sock")} {
		s := &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}
		g := asking(t, serve(t, network, addr, s))
		m, rcode, err := ask(g, "www.example.org.")
		if err != nil || rcode != 0 || m == nil || len(m.Answer) != 1 || s.asked.Load() != 1 {
			t.Errorf("%s: %v %d %v", network, m, rcode, err)
		}
	}
}

// What a reply repeats of its query is the client's, whatever the upstream made of it.
func TestReplyIsTheClients(t *testing.T) {
	s := &service{answer: func(r *dns.Msg) (*dns.Msg, error) {
		m, err := says(0, "www.example.org. 60 IN A 192.0.2.1")(r)
		m.Id, m.Question[0].Name = r.Id+1, "www.example.org."
		return m, err
	}}
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", s))
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	r := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA)
	if _, err := g.ServeDNS(t.Context(), rec, r); err != nil || rec.Msg == nil || rec.Msg.Id != r.Id || rec.Msg.Question[0] != r.Question[0] || len(rec.Msg.Answer) != 1 {
		t.Errorf("got %v, %v for id %d", rec.Msg, err, r.Id)
	}
}

// The zone of a link-local address stands in it as it is written.
func TestAddressWithZone(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("no IPv6 here")
	} else {
		l.Close()
	}
	_, port, _ := net.SplitHostPort(serve(t, "tcp", "[::1]:0", &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}))
	lo, err := net.InterfaceByIndex(1)
	if err != nil {
		t.Skip(err)
	}
	if m, rcode, err := ask(asking(t, "[::1%"+lo.Name+"]:"+port), "www.example.org."); err != nil || rcode != 0 || m == nil || len(m.Answer) != 1 {
		t.Errorf("got %v %d %v", m, rcode, err)
	}
}

// A query that is followed takes its trace along to the upstream.
func TestTrace(t *testing.T) {
	s := &service{answer: says(dns.RcodeSuccess, "")}
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", s))
	tracer := mocktracer.New()
	parent := tracer.StartSpan("grpc")
	_, err := g.ServeDNS(ot.ContextWithSpan(t.Context(), parent), dnstest.NewRecorder(&test.ResponseWriter{}), new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	spans := tracer.FinishedSpans()
	if err != nil || len(spans) != 1 {
		t.Fatalf("%v, %d spans", err, len(spans))
	}
	md := s.told.Load().(metadata.MD)
	if got := md.Get("mockpfx-ids-spanid"); len(got) != 1 || got[0] != strconv.Itoa(spans[0].SpanContext.SpanID) || spans[0].ParentID != parent.Context().(mocktracer.MockSpanContext).SpanID {
		t.Errorf("upstream was told %v", md)
	}
	if _, _, err := ask(g, "www.example.org."); err != nil || s.told.Load().(metadata.MD).Get("mockpfx-ids-spanid") != nil {
		t.Errorf("without a trace: %v, %v", err, s.told.Load())
	}
}

// A header without a question that tells an error is the reply; another one is none.
func TestBareErrors(t *testing.T) {
	for rcode, want := range map[int]int{dns.RcodeFormatError: 1, dns.RcodeServerFailure: 2, dns.RcodeNotImplemented: 4, dns.RcodeRefused: 5,
		dns.RcodeSuccess: dns.RcodeFormatError, dns.RcodeNameError: dns.RcodeFormatError} {
		for _, opt := range []bool{false, true} {
			s := &service{answer: func(r *dns.Msg) (*dns.Msg, error) {
				m := &dns.Msg{MsgHdr: dns.MsgHdr{Id: r.Id, Response: true, Rcode: rcode, RecursionAvailable: true}}
				if opt {
					m.SetEdns0(1232, false)
				}
				return m, nil
			}}
			m, _, err := ask(asking(t, serve(t, "tcp", "127.0.0.1:0", s)), "www.example.org.")
			if err != nil || m == nil || m.Rcode != want || len(m.Question) != 1 || m.Question[0].Name != "www.example.org." || m.RecursionAvailable != (want == rcode) {
				t.Errorf("%d: got %v, %v", rcode, m, err)
			}
		}
	}
	s := &service{answer: func(r *dns.Msg) (*dns.Msg, error) {
		return &dns.Msg{MsgHdr: dns.MsgHdr{Id: r.Id + 1, Response: true, Rcode: dns.RcodeRefused}}, nil
	}}
	if m, _, err := ask(asking(t, serve(t, "tcp", "127.0.0.1:0", s)), "www.example.org."); err != nil || m == nil || m.Rcode != dns.RcodeFormatError {
		t.Errorf("another id: got %v, %v", m, err)
	}
}

func TestUpstreamsInTurn(t *testing.T) {
	failing := &service{answer: func(*dns.Msg) (*dns.Msg, error) { return nil, status.Error(codes.Unavailable, "as it should") }}
	good := &service{answer: says(0, "www.example.org. 60 IN A 192.0.2.1")}
	g := asking(t, loopback.Addr(), serve(t, "tcp", "127.0.0.1:0", failing), serve(t, "tcp", "127.0.0.1:0", good))
	if m, _, err := ask(g, "www.example.org."); err != nil || m == nil || len(m.Answer) != 1 || failing.asked.Load() != 1 || good.asked.Load() != 1 {
		t.Errorf("%v %v, asked %d and %d times", m, err, failing.asked.Load(), good.asked.Load())
	}
	g.proxies = g.proxies[:2]
	if m, rcode, err := ask(g, "www.example.org."); m != nil || rcode != dns.RcodeServerFailure || !strings.Contains(err.Error(), "as it should") {
		t.Errorf("%v %d %v", m, rcode, err)
	}
	g.proxies = nil
	if _, rcode, err := ask(g, "www.example.org."); rcode != dns.RcodeServerFailure || !errors.Is(err, ErrNoHealthy) {
		t.Errorf("%d %v", rcode, err)
	}
}

func TestOddReplies(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(*dns.Msg) (*dns.Msg, error)
		rcode  int
	}{
		"not found":        {func(*dns.Msg) (*dns.Msg, error) { return nil, status.Error(codes.NotFound, "") }, dns.RcodeNameError},
		"refused":          {says(dns.RcodeRefused, ""), dns.RcodeRefused},
		"another question": {func(r *dns.Msg) (*dns.Msg, error) { r.Question[0].Name = "other."; return r.SetReply(r), nil }, dns.RcodeFormatError},
	} {
		g := asking(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: tc.answer}))
		if m, rcode, err := ask(g, "www.example.org."); err != nil || rcode != 0 || m == nil || m.Rcode != tc.rcode || m.Question[0].Name != "www.example.org." {
			t.Errorf("%s: %v %d %v", name, m, rcode, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: says(0, "")}))
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	for range 5 {
		rr, _ := dns.NewRR("www.example.org. 60 IN TXT \"x\"")
		for range 20000 / 16 {
			rr.(*dns.TXT).Txt = append(rr.(*dns.TXT).Txt, "some-fifteen-ch")
		}
		r.Extra = append(r.Extra, rr)
	}
	if _, _, err := g.ask(context.Background(), r); !errors.Is(err, ErrDNSMessageTooLarge) {
		t.Error(err)
	}
}

func TestFallthroughAndZones(t *testing.T) {
	next := errors.New("next")
	denies := serve(t, "tcp", "127.0.0.1:0", &service{answer: says(dns.RcodeNameError, "")})
	for name, tc := range map[string]struct {
		fall  []string
		query string
		next  bool
		addr  string
		rcode int
		err   error
	}{
		"denied":                         {query: "www.example.org.", addr: denies, next: true, rcode: dns.RcodeSuccess},
		"denied, passed on":              {query: "www.example.org.", addr: denies, fall: []string{"."}, next: true, rcode: dns.RcodeRefused, err: next},
		"denied, for other names":        {query: "www.example.org.", addr: denies, fall: []string{"example.com."}, next: true},
		"denied, nobody to pass on to":   {query: "www.example.org.", addr: denies, fall: []string{"."}},
		"nobody there, passed on":        {query: "www.example.org.", fall: []string{"."}, next: true, rcode: dns.RcodeRefused, err: next},
		"excepted":                       {query: "a.except.example.org.", addr: denies, next: true, rcode: dns.RcodeRefused, err: next},
		"excepted, nobody to pass on to": {query: "a.except.example.org.", addr: denies, rcode: dns.RcodeServerFailure},
	} {
		g := asking(t)
		if tc.addr != "" {
			g = asking(t, tc.addr)
		}
		if tc.fall != nil {
			g.Fall.SetZonesFromArgs(tc.fall)
		}
		if tc.next {
			g.Next = test.NextHandler(dns.RcodeRefused, next)
		}
		if _, rcode, err := ask(g, tc.query); rcode != tc.rcode || err != tc.err {
			t.Errorf("%s: %d %v", name, rcode, err)
		}
	}
}

func TestDeadline(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	g := asking(t, serve(t, "tcp", "127.0.0.1:0", &service{answer: func(r *dns.Msg) (*dns.Msg, error) { <-release; return r, nil }}))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, _, err := g.ask(ctx, new(dns.Msg).SetQuestion("a.", dns.TypeA)); status.Code(errors.Unwrap(err)) != codes.DeadlineExceeded || time.Since(began) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestServeWire(t *testing.T) {
	g := asking(t)
	for name, want := range map[string]wire.Outcome{"www.example.org.": wire.Unpack, "a.except.example.org.": wire.Done} {
		b, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(b) {
			t.Fatal("not eligible")
		}
		if out := g.ServeWire(context.Background(), &w, &q); out != want {
			t.Errorf("%s: %v", name, out)
		}
		if want == wire.Done && (!w.Failed() || w.Rcode() != dns.RcodeServerFailure) {
			t.Error("no failure")
		}
	}
	var _ plugin.WireHandler = g
}

// A validator decides who is asked first and last, and learns who answered.
func TestDetour(t *testing.T) {
	var addrs []string
	for _, a := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		addrs = append(addrs, serve(t, "tcp", "127.0.0.1:0", &service{answer: says(0, "www.example.org. 60 IN A "+a)}))
	}
	g := asking(t, addrs...)
	for _, tc := range []struct {
		first string
		last  []string
		want  int
	}{{"", nil, 0}, {addrs[1], nil, 1}, {"", addrs[:2], 2}, {addrs[0], addrs[:1], 1}} {
		took := ""
		d := &advice.Detour{First: tc.first, Last: tc.last, Took: func(up string) { took = up }}
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := g.ServeDNS(advice.WithDetour(t.Context(), d), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); err != nil || took != addrs[tc.want] {
			t.Errorf("first %q, last %q: %q answered, want %q: %v", tc.first, tc.last, took, addrs[tc.want], err)
		}
	}
	if _, _, err := ask(g, "www.example.org."); err != nil || g.proxies[0].addr != addrs[0] {
		t.Errorf("the order has stayed: %v", err)
	}
}
