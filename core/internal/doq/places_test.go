package doq

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

// deaf is a connection whose client reads nothing: there is no room for a long reply.
func deaf(t *testing.T, addr string) *quic.Conn {
	t.Helper()
	config := clients.Trusting.Clone()
	config.NextProtos = []string{"doq"}
	c, err := quic.DialAddr(t.Context(), addr, config, &quic.Config{
		InitialStreamReceiveWindow: 1000, MaxStreamReceiveWindow: 1000,
		InitialConnectionReceiveWindow: 1000, MaxConnectionReceiveWindow: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseWithError(0, "") })
	return c
}

// lengthy answers in the message lane: "long." with more than fits into a packet.
var lengthy = coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	n := 1
	if r.Question[0].Name == "long." {
		n = 200
	}
	for range n {
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(192, 0, 2, 1)})
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
})

// Replies that a client does not read keep no workers from the queries of others.
func TestUnreadKeepNoWorkers(t *testing.T) {
	for name, h := range map[string]plugin.Handler{"wire": new(coretest.Lane), "messages": lengthy} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h, 1, func(s *service.Service) { s.Write = time.Hour })
			c := deaf(t, s.addr)
			for range 3 {
				send(t, c, framed(t, query("long.")), true)
			}
			eventually.Holds(t, "replies wait", func() bool { return unsent.Octets() > 0 })
			if r, err := clients.DialQUIC(t, s.addr).Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
				t.Errorf("got %v, %v", r, err)
			}
			if err := context.Cause(c.Context()); err != nil {
				t.Errorf("only when the others had gone: %v", err)
			}
		})
	}
}

// Nor do they keep places from all queries of the process that may wait.
func TestUnreadGiveWay(t *testing.T) {
	s := serve(t, lengthy, 100, func(s *service.Service) { s.Write = time.Hour })
	exec.SetWaiting(1)
	defer exec.SetWaiting(memory.Waiting(memory.Limit()))
	stream := send(t, deaf(t, s.addr), framed(t, query("long.")), true)
	eventually.Holds(t, "the reply waits", func() bool { return unsent.Octets() > 0 })
	if r, err := clients.DialQUIC(t, s.addr).Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	if got, n := resetCode(stream), coretest.Limited(s.Service, "waiting"); got != int(streamInternal) || n != 1 {
		t.Errorf("code %d, counted %d", got, n)
	}
}
