package dnsserver

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/doq"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

func TestServe(t *testing.T) {
	_, udp, tcp := running(t, block1("example.org.", echo), &Config{Zone: "empty.", ListenHosts: []string{""}, Port: "0", Transport: "dns"})
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		r := ask(t, network, addr, "WWW.example.org.", nil)
		if r.Rcode != 0 || len(r.Answer) != 1 || r.IsEdns0() != nil || r.Question[0].Name != "WWW.example.org." {
			t.Errorf("%s: %v", network, r)
		}
		r = ask(t, network, addr, "www.example.org.", func(m *dns.Msg) { m.SetEdns0(4096, true) })
		if o := r.IsEdns0(); o == nil || !o.Do() || o.UDPSize() != 1232 {
			t.Errorf("%s: OPT %v", network, o)
		}
		for _, name := range []string{"example.net.", ".", "www.empty."} {
			if r := ask(t, network, addr, name, nil); r.Rcode != dns.RcodeRefused || len(r.Question) != 1 {
				t.Errorf("%s %s: %v", network, name, r)
			}
		}
		if r := ask(t, network, addr, "example.org.", func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }); r.Rcode != dns.RcodeRefused {
			t.Errorf("%s class CH: %v", network, r)
		}
		r = ask(t, network, addr, "example.org.", func(m *dns.Msg) { m.SetEdns0(4096, false); m.IsEdns0().SetVersion(1) })
		if r.Rcode != dns.RcodeBadVers || r.IsEdns0().Version() != 0 || r.IsEdns0().UDPSize() != 1232 {
			t.Errorf("%s version 1: %v", network, r)
		}
	}
}

// raw sends octets and returns what comes back within a moment.
func raw(t *testing.T, network, addr, octets string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(octets, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	c, err := dns.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	got, err := c.ReadMsgHeader(nil)
	if err != nil {
		return "no answer"
	}
	return hex.EncodeToString(got)
}

func TestMalformed(t *testing.T) {
	_, udp, tcp := running(t, block1(".", echo))
	const q = "076578616d706c65036f726700 00010001"
	for _, tc := range []struct{ what, in, want string }{
		{"eleven octets", "1234010000010000000000", "no answer"},
		{"QR is set", "123481000001000000000000" + q, "no answer"},
		{"no question", "123401000000000000000000", "123481010000000000000000"},
		{"two questions", "123401000002000000000000" + q + q, "123481010000000000000000"},
		{"cut question", "123401000001000000000000 076578616d70", "123481010000000000000000"},
		{"pointer to itself", "123401000001000000000000 c00c 00010001", "123481010000000000000000"},
		{"three additional", "123401000001000000000003" + q, "123481010000000000000000"},
		{"STATUS with AD and CD", "123411300001000000000000" + q, "123491340000000000000000"},
		{"UPDATE", "123429000001000000000000" + q, "1234a9040000000000000000"},
		{"two OPT", "123401000001000000000002" + q + strings.Repeat("0000291000000000000000", 2), "123481010001000000000001076578616d706c65036f72670000010001" + "00002904d0000000000000"},
		{"bad OPT", "123401000001000000000001" + q + "0000291000000000000001", "123481010001000000000000076578616d706c65036f72670000010001"},
		{"header that says there is a question", "123401000001000000000000", "123481020000000000000000"},
	} {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			if got := raw(t, network, addr, tc.in); got != tc.want {
				t.Errorf("%s over %s: got %s, want %s", tc.what, network, got, tc.want)
			}
		}
	}
}

func TestPipelinedQueriesDoNotWaitForEachOther(t *testing.T) {
	g := newGate(t)
	_, _, tcp := running(t, block1(".", g))
	conn, err := net.Dial("tcp", tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var out []byte
	for i, name := range []string{"slow1.", "slow2.", "slow3.", "fast."} {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		m.Id = uint16(i)
		b, _ := m.Pack()
		out = append(out, doq.Frame(b)...)
	}
	conn.Write(out)
	conn.SetReadDeadline(time.Now().Add(clients.AskTime))
	var order []uint16
	for range 4 {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, binary.BigEndian.Uint16(length[:]))
		io.ReadFull(conn, b)
		order = append(order, binary.BigEndian.Uint16(b))
		if len(order) == 1 { // the fast one, while all others are at work
			g.holds(t, 3)
			g.open()
		}
	}
	if order[0] != 3 {
		t.Errorf("order %v", order)
	}
}

func TestStopAnswersWhatWasReceived(t *testing.T) {
	g := newGate(t)
	s, udp, tcp := running(t, block1(".", g))
	conns := map[string]*dns.Conn{}
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		c, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(clients.AskTime))
		if err := c.WriteMsg(new(dns.Msg).SetQuestion("slow.", dns.TypeA)); err != nil {
			t.Fatal(err)
		}
		conns[network] = c
	}
	g.holds(t, 2)
	ended := stopping(t, s)
	g.open()
	ended()
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	for network, c := range conns {
		if r, err := c.ReadMsg(); err != nil || len(r.Answer) != 1 {
			t.Errorf("%s: %v %v", network, r, err)
		}
	}
	if c, err := net.DialTimeout("tcp", tcp, time.Second); err == nil {
		c.Close()
		t.Error("the listener is still there")
	}
}

func TestStopGivesUp(t *testing.T) {
	g := newGate(t)
	s, udp, _ := running(t, block1(".", g))
	defer g.open()
	s.grace = 100 * time.Millisecond
	c, _ := dns.Dial("udp", udp)
	defer c.Close()
	c.WriteMsg(new(dns.Msg).SetQuestion("slow.", dns.TypeA))
	g.holds(t, 1)
	if err := s.Stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop: %v", err)
	}
}

func TestPanicCostsOneQuery(t *testing.T) {
	bad := handler{"bad", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if r.Question[0].Name == "panic." {
			panic("as asked")
		}
		return echo.serve(context.Background(), w, r)
	}}
	_, udp, _ := running(t, block1(".", bad))
	if r := ask(t, "udp", udp, "panic.", nil); r.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %v", r)
	}
	if r := ask(t, "udp", udp, "www.", nil); len(r.Answer) != 1 {
		t.Errorf("got %v", r)
	}
}

// A handler may write later, from a goroutine of its own, and keep what it was given.
func TestLateWriter(t *testing.T) {
	late := handler{"late", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		go func() {
			time.Sleep(50 * time.Millisecond)
			echo.serve(context.Background(), w, r)
		}()
		return 0, nil
	}}
	_, udp, tcp := running(t, block1(".", late))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name := fmt.Sprintf("n%d.", i)
			network, addr := "udp", udp
			if i%2 == 0 {
				network, addr = "tcp", tcp
			}
			if r := ask(t, network, addr, name, nil); r.Question[0].Name != name || len(r.Answer) != 1 {
				t.Errorf("%s: %v", name, r)
			}
		})
	}
	wg.Wait()
}

func TestTruncation(t *testing.T) {
	many := handler{"many", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		for i := range 120 {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(10, 0, 0, byte(i))})
		}
		return 0, w.WriteMsg(m)
	}}
	_, udp, tcp := running(t, block1(".", many))
	for _, tc := range []struct {
		network string
		size    uint16
		tc      bool
		least   int
	}{{"udp", 0, true, 25}, {"udp", 300, true, 25}, {"udp", 1232, true, 70}, {"udp", 4096, false, 120}, {"tcp", 0, false, 120}, {"tcp", 512, false, 120}} {
		addr := udp
		if tc.network == "tcp" {
			addr = tcp
		}
		r := ask(t, tc.network, addr, "example.org.", func(m *dns.Msg) {
			if tc.size > 0 {
				m.SetEdns0(tc.size, false)
			}
		})
		if r.Truncated != tc.tc || len(r.Answer) < tc.least || (r.IsEdns0() != nil) != (tc.size > 0) {
			t.Errorf("%s %d: TC %v, %d answers, OPT %v", tc.network, tc.size, r.Truncated, len(r.Answer), r.IsEdns0())
		}
	}
}

// The context tells what plugins ask of it, and the path who wrote.
func TestQueryContext(t *testing.T) {
	servers := make(chan any, 1)
	inner := handler{"inner", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		servers <- ctx.Value(Key{})
		if ctx.Value(LoopKey{}) != 0 || ctx.Value(ViewKey{}) != "v" {
			t.Errorf("context: %v %v", ctx.Value(LoopKey{}), ctx.Value(ViewKey{}))
		}
		return echo.serve(ctx, w, r)
	}}
	wrote := make(chan string, 1)
	cfg := block1(".", nil)
	cfg.ViewName = "v"
	cfg.Plugin = []plugin.Plugin{
		func(next plugin.Handler) plugin.Handler {
			return handler{"outer", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
				rc, err := plugin.NextOrFailure("outer", next, ctx, w, r)
				wrote <- plugin.PathFrom(ctx).Wrote()
				return rc, err
			}}
		},
		func(plugin.Handler) plugin.Handler { return inner },
	}
	server, udp, _ := running(t, cfg)
	ask(t, "udp", udp, "example.org.", nil)
	if got := <-servers; got != any(server) {
		t.Errorf("the server is %v", got)
	}
	if got := <-wrote; got != "inner" {
		t.Errorf("the writer is %q", got)
	}
	if cfg.Handler("outer") == nil || cfg.Handler("inner") == nil || len(cfg.Chain()) != 2 {
		t.Error("the registry has not the chain's handlers")
	}
}

// What the blocks of a listener say is taken over by its server.
func TestConfiguredServer(t *testing.T) {
	seven := 7
	s, err := NewServer("tls://:853", []*Config{
		{Zone: "a.", ReadTimeout: time.Second, TsigSecret: map[string]string{"one.": "b25l"}},
		{Zone: "b.", WriteTimeout: 2 * time.Second, IdleTimeout: 4 * time.Second, MaxTCPQueries: &seven, TsigSecret: map[string]string{"two.": "dHdv"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	sv := s.service()
	if sv.Read != time.Second || sv.Write != 2*time.Second || sv.Idle != 4*time.Second || sv.Queries != 7 || sv.Label != "tls://:853" || sv != s.service() {
		t.Errorf("got %+v", sv)
	}
	if f := sv.Finish; len(f.Secrets) != 2 || f.Keepalive != 40 || !f.Pad || f.AnySize {
		t.Errorf("got %+v", f)
	}
	if s.Address() != s.Addr || s.Label() != s.Addr || s.Tracer() != nil {
		t.Errorf("%s, %s, %v", s.Address(), s.Label(), s.Tracer())
	}
	if _, err := NewServer("dns://:53", []*Config{{Zone: "bad..zone."}}); err == nil {
		t.Error("a zone that is no name is no error")
	}
}

// What listeners of each scheme add to replies by themselves.
func TestFinisherOf(t *testing.T) {
	for scheme, want := range map[string]struct {
		keepalive uint16
		pad, any  bool
	}{
		"dns": {100, false, false}, "": {100, false, false}, "tls": {100, true, false}, "https": {0, true, false},
		"https3": {0, true, true}, "quic": {0, true, true}, "grpc": {0, true, false},
	} {
		if f := finisherOf(scheme, 10*time.Second, processCookies, nil); f.Keepalive != want.keepalive || f.Pad != want.pad || f.AnySize != want.any || f.Cookies != processCookies {
			t.Errorf("%s: %+v", scheme, f)
		}
	}
	if f := finisherOf("dns", 100*time.Hour, nil, nil); f.Keepalive != 65535 {
		t.Errorf("a long time is %d", f.Keepalive)
	}
}

// Programs ask a Server as plugins do, without sockets, also one that is made as a value.
func TestServerWithoutSockets(t *testing.T) {
	s, err := NewServer("dns://:53", []*Config{block1(".", echo)})
	if err != nil {
		t.Fatal(err)
	}
	w := &kept{ResponseWriter: addressed{}}
	s.ServeDNS(t.Context(), w, query("www."))
	if describe(w.m) != "NOERROR 192.0.2.1" {
		t.Errorf("got %v", w.m)
	}
	long := new(dns.Msg).SetReply(query("www."))
	for range 100 {
		long.Answer = append(long.Answer, w.m.Answer[0])
	}
	for name, s := range map[string]*Server{"made": s, "value": {Addr: "dns://:53"}} {
		if m := s.AsSent(long, query("www."), w); !m.Truncated || len(long.Answer) != 100 {
			t.Errorf("%s: TC %t", name, m.Truncated)
		}
	}
	if m := (&Server{Addr: "quic://:853"}).AsSent(long, query("www."), w); m.Truncated {
		t.Error("cut where replies are of any size")
	}
}

// addressed is a writer that has addresses only.
type addressed struct{ dns.ResponseWriter }

func (addressed) LocalAddr() net.Addr  { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 53)} }
func (addressed) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)} }

// Over plain UDP the address of a client may be forged; TCP and QUIC have handshakes.
func TestForgeable(t *testing.T) {
	for _, tc := range []struct {
		addr  string
		proto wire.Proto
		want  bool
	}{{"dns://:53", wire.UDP, true}, {"dns://:53", wire.TCP, false}, {"quic://:853", wire.UDP, false}, {"https3://:443", wire.UDP, false}} {
		if got := (&Server{Addr: tc.addr}).Forgeable(tc.proto); got != tc.want {
			t.Errorf("%s, %v: %t", tc.addr, tc.proto, got)
		}
	}
}
