package thirdparty

import (
	"context"
	"net"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// literal is a Config as tests and small programs write it.
func literal(handle plugin.HandlerFunc) *dnsserver.Config {
	return &dnsserver.Config{
		Zone: "example.org.", ListenHosts: []string{"127.0.0.1"}, Port: "53",
		Plugin: []plugin.Plugin{func(plugin.Handler) plugin.Handler { return handle }},
	}
}

func answerOne(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return dns.RcodeSuccess, w.WriteMsg(oneAddress(r))
}

// A Server of a literal is asked without a socket, by hand and by upstream, which finds it through the context.
func TestLiteralWithoutSockets(t *testing.T) {
	s, err := dnsserver.NewServer("dns://:53", []*dnsserver.Config{literal(answerOne)})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"www.example.org.": "NOERROR A 192.0.2.1", "www.example.net.": "REFUSED"} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		s.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(name, dns.TypeA))
		if got := text(rec.Msg); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	ctx := context.WithValue(context.Background(), dnsserver.Key{}, s)
	ctx = context.WithValue(ctx, dnsserver.LoopKey{}, 0)
	state := request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion("x.example.net.", dns.TypeA)}
	m, err := upstream.New().Lookup(ctx, state, "www.example.org.", dns.TypeA)
	if err != nil || text(m) != "NOERROR A 192.0.2.1" || m.Question[0].Name != "www.example.org." {
		t.Errorf("upstream: %v, %v", m, err)
	}
	if _, err := upstream.New().Lookup(context.Background(), state, "www.example.org.", dns.TypeA); err == nil {
		t.Error("upstream: no server, and no error")
	}
}

// The same Server serves sockets that its owner opened.
func TestLiteralWithSockets(t *testing.T) {
	was := dnsserver.WireLane
	defer func() { dnsserver.WireLane = was }()
	for _, dnsserver.WireLane = range []bool{true, false} {
		pc, ln, err := loopback.Listen()
		if err != nil {
			t.Fatal(err)
		}
		s, err := dnsserver.NewServer("dns://"+pc.LocalAddr().String(), []*dnsserver.Config{literal(answerOne)})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		go func() { done <- s.ServePacket(pc) }()
		go func(ln net.Listener) { done <- s.Serve(ln) }(ln)
		asked := &server{t, nil, map[string]string{"udp": pc.LocalAddr().String(), "tcp": ln.Addr().String()}}
		asked.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
		asked.expect("www.example.net.", dns.TypeA, "REFUSED")
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		for range 2 {
			<-done
		}
	}
}
