package dnstap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"
)

// frames keeps what it takes.
type frames struct {
	mu  sync.Mutex
	all []*tap.Dnstap
}

func (f *frames) take(b []byte, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		frame := new(tap.Dnstap)
		end := 4 + int(binary.BigEndian.Uint32(b))
		if err := proto.Unmarshal(b[4:end], frame); err != nil {
			panic(err)
		}
		f.all = append(f.all, frame)
		b = b[end:]
	}
	if len(b) > 0 {
		panic("octets behind the last frame")
	}
}

func (f *frames) kinds() (kinds []tap.Message_Type) {
	for _, frame := range f.all {
		kinds = append(kinds, frame.Message.GetType())
	}
	return kinds
}

func answers() plugin.Handler {
	return plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A("www.example.org. 60 IN A 192.0.2.1")}
		return 0, w.WriteMsg(m)
	})
}

func TestServeDNS(t *testing.T) {
	sink := new(frames)
	h := &Dnstap{Next: answers(), IncludeRawMessage: true, Identity: []byte("me"), Version: []byte("1"), ExtraFormat: "{name} {/a/b} {rcode}", sink: sink}
	ctx := metadata.ContextWithMetadata(context.WithValue(context.Background(), dnsserver.Key{}, &dnsserver.Server{Addr: "tls://:853"}))
	metadata.SetValueFunc(ctx, "a/b", func() string { return "label" })
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	if rcode, err := h.ServeDNS(ctx, &test.ResponseWriter{TCP: true}, r); rcode != 0 || err != nil {
		t.Fatal(rcode, err)
	}
	if len(sink.all) != 2 {
		t.Fatal(sink.all)
	}
	for i, frame := range sink.all {
		m := frame.Message
		if string(frame.Identity) != "me" || string(frame.Version) != "1" || string(frame.Extra) != "www.example.org. label -" || frame.GetType() != tap.Dnstap_MESSAGE {
			t.Errorf("%d: %v", i, frame)
		}
		if m.GetSocketProtocol() != tap.SocketProtocol_DOT || m.GetQueryPort() != 40212 || m.QueryAddress == nil || m.ResponseAddress == nil || m.GetQueryTimeSec() == 0 {
			t.Errorf("%d: %v", i, m)
		}
	}
	var query, reply dns.Msg
	if sink.all[0].Message.GetType() != tap.Message_CLIENT_QUERY || query.Unpack(sink.all[0].Message.QueryMessage) != nil || query.Id != r.Id || sink.all[0].Message.ResponseTimeSec != nil {
		t.Error(sink.all[0])
	}
	if m := sink.all[1].Message; m.GetType() != tap.Message_CLIENT_RESPONSE || reply.Unpack(m.ResponseMessage) != nil || len(reply.Answer) != 1 || m.GetResponseTimeSec() == 0 {
		t.Error(m)
	}
}

// In the message lane a reply is told as the server sends it, which is after the plugin.
func TestReplyIsToldAsSent(t *testing.T) {
	for _, tc := range []struct {
		addr string // of the server; "" without one
		size uint16 // of the client; 0 without EDNS
		w    dns.ResponseWriter
		opt  bool
		cut  bool
	}{
		{"dns://:53", 0, &test.ResponseWriter{}, false, true},
		{"dns://:53", 700, &test.ResponseWriter{}, true, true},
		{"dns://:53", 4096, &test.ResponseWriter{}, true, false},
		{"dns://:53", 512, &test.ResponseWriter{TCP: true}, true, false},
		{"quic://:853", 512, &test.ResponseWriter{}, true, false},
		{"", 700, &test.ResponseWriter{}, false, false},
	} {
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		if tc.size > 0 {
			r.SetEdns0(tc.size, true)
		}
		m := new(dns.Msg).SetReply(r)
		for range 60 {
			m.Answer = append(m.Answer, test.A("www.example.org. 60 IN A 192.0.2.1"))
		}
		sink := new(frames)
		h := &Dnstap{IncludeRawMessage: true, sink: sink, Next: plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
			return 0, w.WriteMsg(m)
		})}
		ctx := t.Context()
		if tc.addr != "" {
			ctx = context.WithValue(ctx, dnsserver.Key{}, &dnsserver.Server{Addr: tc.addr})
		}
		h.ServeDNS(ctx, tc.w, r)
		var told dns.Msg
		if err := told.Unpack(sink.all[1].Message.ResponseMessage); err != nil {
			t.Fatal(err)
		}
		if opt := told.IsEdns0(); (opt != nil) != tc.opt || opt != nil && !opt.Do() || told.Truncated != tc.cut || (len(told.Answer) < 60) != tc.cut {
			t.Errorf("%s, size %d: told %d answers, TC %t, %v", tc.addr, tc.size, len(told.Answer), told.Truncated, opt)
		}
		if m.Truncated || len(m.Answer) != 60 || m.IsEdns0() != nil {
			t.Errorf("%s, size %d: the reply has changed", tc.addr, tc.size)
		}
	}
}

type broken struct{ test.ResponseWriter }

func (broken) WriteMsg(*dns.Msg) error { return errors.New("as it should") }

func TestWhatIsTold(t *testing.T) {
	query := []tap.Message_Type{tap.Message_CLIENT_QUERY}
	both := []tap.Message_Type{tap.Message_CLIENT_QUERY, tap.Message_CLIENT_RESPONSE}
	for name, tc := range map[string]struct {
		next plugin.Handler
		w    dns.ResponseWriter
		want []tap.Message_Type
	}{
		"answered":                  {answers(), &test.ResponseWriter{}, both},
		"a write that fails":        {answers(), &broken{}, query},
		"the server writes":         {test.NextHandler(dns.RcodeServerFailure, errors.New("x")), &test.ResponseWriter{}, both},
		"nobody writes, on purpose": {test.NextHandler(dns.RcodeSuccess, nil), &test.ResponseWriter{}, query},
	} {
		sink := new(frames)
		h := &Dnstap{Next: tc.next, sink: sink}
		h.ServeDNS(context.Background(), tc.w, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		kinds := sink.kinds()
		if len(kinds) != len(tc.want) || kinds[0] != tc.want[0] {
			t.Errorf("%s: %v", name, kinds)
		}
		for _, frame := range sink.all {
			if frame.Message.QueryMessage != nil || frame.Message.ResponseMessage != nil || frame.Extra != nil {
				t.Errorf("%s: %v", name, frame)
			}
		}
	}
}

// What a plugin passes on as it is, such as the reply to an update, is told as it is.
func TestOctetsAreTold(t *testing.T) {
	r := new(dns.Msg).SetUpdate("example.org.")
	packet, err := new(dns.Msg).SetRcode(r, dns.RcodeRefused).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []bool{true, false} {
		sink := new(frames)
		h := &Dnstap{IncludeRawMessage: raw, sink: sink, Next: plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
			_, err := w.Write(packet)
			return 0, err
		})}
		if rcode, err := h.ServeDNS(t.Context(), &test.ResponseWriter{}, r); rcode != 0 || err != nil {
			t.Fatal(rcode, err)
		}
		if kinds := sink.kinds(); len(kinds) != 2 || kinds[1] != tap.Message_CLIENT_RESPONSE {
			t.Fatal(kinds)
		}
		if m := sink.all[1].Message; bytes.Equal(m.ResponseMessage, packet) != raw || m.GetResponseTimeSec() == 0 {
			t.Errorf("told %v", m)
		}
	}
}

// unreachable is an error of a resolver that tells clients why.
type unreachable struct{}

func (unreachable) Error() string { return "no answer" }
func (unreachable) ExtendedError() (uint16, string) {
	return dns.ExtendedErrorCodeNoReachableAuthority, "gone"
}
func (unreachable) Resolves() {}

// known is one that was found out for an earlier query.
type known struct{ unreachable }

func (known) Unwrap() error { return again{} }

type again struct{ unreachable }

func (again) ExtendedError() (uint16, string) { return dns.ExtendedErrorCodeCachedError, "" }

// An error reply that the server makes is told with what its error has for the client, in both lanes.
func TestErrorIsToldAsSent(t *testing.T) {
	for _, tc := range []struct {
		why  error
		want string
	}{
		{unreachable{}, "[22 (No Reachable Authority): (gone)]"},
		{known{}, "[22 (No Reachable Authority): (gone) 13 (Cached Error): ()]"},
		{fmt.Errorf("plugin/a: %w", known{}), "[22 (No Reachable Authority): (gone) 13 (Cached Error): ()]"},
	} {
		toldAsSent(t, tc.why, tc.want)
	}
}

// toldAsSent wants the extended errors of an error to be told, in both lanes.
func toldAsSent(t *testing.T, why error, want string) {
	t.Helper()
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).SetEdns0(1232, true)
	packet, _ := r.Pack()
	var q wire.Query
	var w wire.Reply
	w.Reset(nil)
	q.Parse(packet)
	for lane, ask := range map[string]func(h *Dnstap){
		"wire":    func(h *Dnstap) { h.ServeWire(t.Context(), &w, &q) },
		"message": func(h *Dnstap) { h.ServeDNS(t.Context(), &test.ResponseWriter{}, r) },
	} {
		sink := new(frames)
		ask(&Dnstap{Next: &source{
			Handler: test.NextHandler(dns.RcodeServerFailure, why), out: wire.Done, fail: true, why: why,
		}, IncludeRawMessage: true, sink: sink})
		var told dns.Msg
		if err := told.Unpack(sink.all[1].Message.ResponseMessage); err != nil {
			t.Fatal(err)
		}
		opt := told.IsEdns0()
		if told.Rcode != dns.RcodeServerFailure || !told.RecursionAvailable || opt == nil || fmt.Sprint(opt.Option) != want {
			t.Errorf("%s lane: told %v, want %s", lane, &told, want)
		}
	}
}

func TestTapMessage(t *testing.T) {
	new(Dnstap).TapMessage(new(tap.Message)) // without a sink: nothing
	sink := new(frames)
	h := &Dnstap{ExtraFormat: "{name}", sink: sink}
	m := new(tap.Message)
	kind := tap.Message_TOOL_QUERY
	m.Type = &kind
	h.TapMessage(m)
	h.TapMessageWithMetadata(context.Background(), m, request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion("a.", dns.TypeA)})
	if len(sink.all) != 2 || string(sink.all[0].Extra) != "{name}" || string(sink.all[1].Extra) != "a." {
		t.Error(sink.all)
	}
}

// source answers in the wire lane.
type source struct {
	plugin.Handler
	out  wire.Outcome
	fail bool
	why  error
	drop bool
}

func (s *source) WireSelf() plugin.Handler { return s }
func (s *source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	switch {
	case s.fail:
		w.Fail(dns.RcodeServerFailure, s.why)
	case s.drop:
		w.Drop()
	default:
		w.Begin(q)
		w.Addr(wire.Answer, q.Name(), 60, netip.MustParseAddr("192.0.2.1"))
	}
	return s.out
}

func TestServeWire(t *testing.T) {
	for name, tc := range map[string]struct {
		source source
		extra  string
		want   int // frames
		out    wire.Outcome
		rcode  int
	}{
		"answered":  {source: source{out: wire.Done}, want: 2, out: wire.Done},
		"failed":    {source: source{out: wire.Done, fail: true}, want: 2, out: wire.Done, rcode: dns.RcodeServerFailure},
		"dropped":   {source: source{out: wire.Done, drop: true}, want: 1, out: wire.Done},
		"parked":    {source: source{out: wire.Park}, out: wire.Park},
		"with text": {source: source{out: wire.Done}, extra: "{name}", out: wire.Unpack},
	} {
		sink := new(frames)
		h := &Dnstap{Next: &tc.source, IncludeRawMessage: true, ExtraFormat: tc.extra, sink: sink}
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		r.SetEdns0(1232, true)
		b, _ := r.Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(b) {
			t.Fatal("not eligible")
		}
		q.Client, q.Local = netip.MustParseAddrPort("192.0.2.7:4711"), netip.MustParseAddrPort("[2001:db8::1]:53")
		q.Proto, q.Arrival = wire.TCP, time.Unix(17, 0)
		if out := h.ServeWire(context.Background(), &w, &q); out != tc.out || len(sink.all) != tc.want {
			t.Errorf("%s: %v, %d frames", name, out, len(sink.all))
			continue
		}
		for i, frame := range sink.all {
			m := frame.Message
			if m.GetQueryTimeSec() != 17 || m.GetQueryPort() != 4711 || m.GetResponsePort() != 53 || m.GetSocketProtocol() != tap.SocketProtocol_TCP {
				t.Errorf("%s: %d: %v", name, i, m)
			}
			// A proxy may tell a client of the other family than its own, and ours.
			if m.GetSocketFamily() != tap.SocketFamily_INET || len(m.QueryAddress) != 4 {
				t.Errorf("%s: %d: the client is %v of %v", name, i, m.QueryAddress, m.GetSocketFamily())
			}
		}
		if tc.want > 0 && string(sink.all[0].Message.QueryMessage) != string(b) {
			t.Errorf("%s: query %x", name, sink.all[0].Message.QueryMessage)
		}
		if tc.want > 1 {
			var told dns.Msg
			if err := told.Unpack(sink.all[1].Message.ResponseMessage); err != nil || told.Rcode != tc.rcode || told.Id != r.Id || told.IsEdns0() == nil {
				t.Errorf("%s: %v %v", name, err, &told)
			}
			if tc.rcode == 0 {
				if sent := w.Finish(&q, 1232); string(sent) != string(sink.all[1].Message.ResponseMessage) {
					t.Errorf("%s: told other octets than were sent", name)
				}
			}
		}
	}
}
