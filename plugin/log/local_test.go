package log

import (
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// {local} is the socket's address over UDP and the connection's over TCP, in both lanes, and for lines that loops
// gather.
func TestLocal(t *testing.T) {
	out := capture(t)
	loop := eventloop.New()
	defer loop.Close()
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	packet, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		hosts []string
		proto wire.Proto
		want  string
	}{
		{[]string{""}, wire.UDP, "[::]"},
		{[]string{"::"}, wire.UDP, "[::]"},
		{[]string{"0.0.0.0"}, wire.UDP, "[::]"},
		{[]string{"127.0.0.1", "::1"}, wire.UDP, "127.0.0.1"},
		{[]string{""}, wire.TCP, "127.0.0.1"},
	} {
		c := caddy.NewTestController("dns", `log . "{proto} {local}"`)
		config := dnsserver.GetConfig(c)
		config.ListenHosts = tc.hosts
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		l := config.Plugin[0](same{}).(Logger)
		want := "[INFO] " + tc.proto.String() + " " + tc.want + "\n"
		told := func(how string) {
			t.Helper()
			clog.Sync()
			if out.String() != want {
				t.Errorf("%s, %s at %q: got %q, want %q", how, tc.proto, tc.hosts, out, want)
			}
			out.Reset()
		}
		asPacket := func(loop *eventloop.Loop) {
			var q wire.Query
			var w wire.Reply
			q.Parse(packet)
			q.Arrival, q.Proto, q.Local = time.Now(), tc.proto, netip.MustParseAddrPort("127.0.0.1:53")
			q.SetLoop(loop)
			w.Reset(make([]byte, 512))
			l.ServeWire(t.Context(), &w, &q)
		}
		l.ServeDNS(t.Context(), &test.ResponseWriter{TCP: tc.proto == wire.TCP}, m)
		told("as a message")
		asPacket(nil)
		told("as a packet")
		loop.Enter()
		asPacket(loop)
		loop.Done(0)
		loop.Leave()
		told("in a loop")
	}
}
