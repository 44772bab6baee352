package grpcdns

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"
)

func TestCodes(t *testing.T) {
	of := serviceFor(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		switch r.Question[0].Name {
		case "wait.":
			<-ctx.Done()
			return 0, ctx.Err()
		case "drop.":
			return 0, nil
		}
		return coretest.Echo(ctx, w, r)
	}), tlsConfig(t), nil)
	of.QueryBytes = 1000
	c := clients.DialGRPC(t, serve(t, of).addr, credentials.NewTLS(clients.Trusting))
	reply := coretest.Query("www.")
	reply.Response = true
	long := packet(t, strings.Repeat("a.", 100)).Msg
	for name, tc := range map[string]struct {
		in   []byte
		want codes.Code
		text string
	}{
		"good":       {packet(t, "www.").Msg, codes.OK, ""},
		"nothing":    {nil, codes.InvalidArgument, "unpacking a query"},
		"garbage":    {[]byte("garbage"), codes.InvalidArgument, "unpacking a query"},
		"a reply":    {coretest.Packed(t, reply), codes.InvalidArgument, "dns request rejected"},
		"too long":   {append(long, make([]byte, 1001-len(long))...), codes.ResourceExhausted, "dns message exceeds size limit: 1001"},
		"far longer": {make([]byte, 65540), codes.ResourceExhausted, ""},
		"dropped":    {packet(t, "drop.").Msg, codes.Unavailable, "the query was dropped"},
		"too late":   {packet(t, "wait.").Msg, codes.DeadlineExceeded, ""},
	} {
		wait := clients.AskTime
		if name == "too late" {
			wait = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		out, err := c.Query(ctx, &pb.DnsPacket{Msg: tc.in})
		cancel()
		if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.text) || (err == nil) != (len(out.GetMsg()) > 0) {
			t.Errorf("%s: got %v, %v", name, out, err)
		}
	}
	if n := coretest.Limited(of, "query_bytes"); n != 1 {
		t.Errorf("counted %d", n)
	}
}

// deadlines tells the deadlines that it is given.
type deadlines struct{ seen chan time.Time }

func (d *deadlines) Name() string             { return "deadlines" }
func (d *deadlines) WireSelf() plugin.Handler { return d }

func (d *deadlines) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	end, _ := ctx.Deadline()
	d.seen <- end
	return coretest.Echo(ctx, w, r)
}

func (d *deadlines) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if wire.FirstLabel(q.Lower())[0] == 'u' {
		return wire.Unpack
	}
	d.seen <- q.Deadline()
	w.Begin(q)
	return wire.Done
}

// from is a context of a call from addr.
func from(ctx context.Context, addr net.Addr) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: addr})
}

// TestDeadline has the deadline of a call reach plugins in both lanes, and that call alone.
func TestDeadline(t *testing.T) {
	h := &deadlines{make(chan time.Time, 1)}
	s := serviceFor(t, h, nil, nil)
	tcp := from(t.Context(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
	late, cancel := context.WithTimeout(tcp, time.Minute)
	defer cancel()
	for _, name := range []string{"wire.", "unpack."} {
		for _, ctx := range []context.Context{late, tcp} {
			if _, err := Query(ctx, s, packet(t, name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			want, _ := ctx.Deadline()
			if got := <-h.seen; !got.Equal(want) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
	}
}

// TestWithoutSocket calls the service as others may do.
func TestWithoutSocket(t *testing.T) {
	s := serviceFor(t, coretest.Who{}, nil, nil)
	if _, err := Query(t.Context(), s, packet(t, "wire.")); code(err) != codes.Internal || !strings.Contains(err.Error(), "no peer in gRPC context") {
		t.Errorf("got %v", err)
	}
	udp := from(t.Context(), &net.UDPAddr{})
	if _, err := Query(udp, s, packet(t, "wire.")); code(err) != codes.Internal || !strings.Contains(err.Error(), "no TCP peer") {
		t.Errorf("got %v", err)
	}
	tcp := from(t.Context(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1})
	for _, name := range []string{"wire.", "unpack."} {
		out, err := Query(tcp, s, packet(t, name))
		if m := new(dns.Msg); err != nil || m.Unpack(out.GetMsg()) != nil || coretest.Describe(m) != "NOERROR 192.0.2.1" {
			t.Errorf("%s: got %v, %v", name, out, err)
		}
	}
}

// Handlers see who asks, and the session of TLS where there is one.
func TestWriter(t *testing.T) {
	s := serviceFor(t, nil, nil, nil)
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 443}
	remote := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	for _, encrypted := range []bool{false, true} {
		p := &peer.Peer{Addr: remote, LocalAddr: local}
		if encrypted {
			p.AuthInfo = credentials.TLSInfo{}
		}
		w, err := writerFor(peer.NewContext(t.Context(), p), s)
		if err != nil {
			t.Fatal(err)
		}
		if w.RemoteAddr() != net.Addr(remote) || w.LocalAddr() != net.Addr(local) || (w.ConnectionState() != nil) != encrypted || w.conn != nil {
			t.Errorf("TLS %v: got %+v", encrypted, w)
		}
		b := []byte("reply")
		w.Send(b)
		b[0]++ // it is not kept
		if msg := *w.msg.Load(); string(msg) != "reply" || w.Close() != nil {
			t.Errorf("keeps %q", msg)
		}
		w.Hijack()
	}
	ours := &admittedAddr{remote, new(admittedConn)}
	if w, err := writerFor(from(t.Context(), ours), s); err != nil || w.conn != ours.conn || w.RemoteAddr() != net.Addr(remote) {
		t.Errorf("of our own: %+v, %v", w, err)
	}
}

// A call that its client has given up, and that nobody has answered, ends as given up.
func TestGivenUp(t *testing.T) {
	s := serviceFor(t, new(coretest.Lane), nil, nil)
	tcp := from(t.Context(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
	over, cancel := context.WithCancel(tcp)
	cancel()
	for ctx, want := range map[context.Context]codes.Code{tcp: codes.Unavailable, over: codes.Canceled} {
		if _, err := Query(ctx, s, packet(t, "drop.")); code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// Where too many queries of the process wait, a call whose time ends is told so.
func TestCrowded(t *testing.T) {
	g := coretest.NewGate(t)
	s := serviceFor(t, g, nil, nil)
	exec.SetWaiting(1)
	defer exec.SetWaiting(memory.Waiting(memory.Limit()))
	tcp := from(t.Context(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := Query(tcp, s, packet(t, "slow.")); err != nil {
			t.Error(err)
		}
	})
	g.Holds(t, 1)
	over, cancel := context.WithCancel(tcp)
	cancel()
	if _, err := Query(over, s, packet(t, "www.")); code(err) != codes.ResourceExhausted || coretest.Limited(s, "waiting") != 1 {
		t.Errorf("got %v, counted %d", err, coretest.Limited(s, "waiting"))
	}
	g.Open()
	wg.Wait()
}
