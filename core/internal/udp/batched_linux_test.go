package udp

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"
)

// Replies leave from the address that was asked, on sockets bound to all addresses of one family or both, and in both
// loops.
func TestReplySource(t *testing.T) {
	for _, bind := range []struct{ network, addr string }{{"udp4", "0.0.0.0:0"}, {"udp", "[::]:0"}, {"udp6", "[::]:0"}, {"udp4", "127.0.0.3:0"}} {
		p, err := net.ListenPacket(bind.network, bind.addr)
		if err != nil {
			t.Skipf("no %s here: %v", bind.network, err)
		}
		s := serveOn(t, coretest.Service(t, coretest.Label(t), new(coretest.Lane)), p, Options{})
		_, port, _ := net.SplitHostPort(s.addr)
		for _, to := range []string{"127.0.0.3", "127.0.0.1", "::1"} {
			switch {
			case bind.network == "udp4" && to == "::1", bind.network == "udp6" && to != "::1", strings.HasPrefix(bind.addr, "127") && to != "127.0.0.3":
				continue
			case to == "::1" && !loopback.HasIPv6():
				t.Logf("not asked at %s: no IPv6 on loopback, sysctl net.ipv6.conf.lo.disable_ipv6=0", to)
				continue
			}
			// A connected socket hears of no other address.
			for _, name := range []string{"local.", "block.", "unpack."} {
				r := ask(t, net.JoinHostPort(to, port), name, func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA })
				if len(r.Answer) != 1 {
					t.Errorf("%v, to %s: %v", bind, to, r)
					continue
				}
				if name == "local." && !strings.HasSuffix(r.Answer[0].String(), "\t"+to) {
					t.Errorf("%v, to %s: the query came to %v", bind, to, r.Answer[0])
				}
			}
		}
	}
}

// Queries of all lengths are read whole.
func TestLongQueries(t *testing.T) {
	got := make(chan int, 1)
	s := serving(t, coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		got <- len(r.IsEdns0().Option[0].(*dns.EDNS0_PADDING).Padding)
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	}), Options{})
	for _, n := range []int{0, querySpace - 32, querySpace - 28, querySpace, 1500, 9000, 65000} {
		ask(t, s.addr, ".", func(m *dns.Msg) {
			m.SetEdns0(4096, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, n)}}
		})
		if length := <-got; length != n {
			t.Errorf("padding of %d octets, want %d", length, n)
		}
	}
}

// TestStackRest has a socket take the first of three replies only: the others come all the same, later, from the
// address that was asked.
func TestStackRest(t *testing.T) {
	for _, bound := range []string{"127.0.0.1:0", ":0"} {
		p, err := net.ListenPacket("udp", bound)
		if err != nil {
			t.Fatal(err)
		}
		sock, err := newBatchedSocket(p.(*net.UDPConn))
		if err != nil {
			t.Fatal(err)
		}
		sock.shed(shedding(t))
		_, port, _ := net.SplitHostPort(p.LocalAddr().String())
		var conns []net.Conn
		for i := range 3 {
			c, err := net.Dial("udp", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			c.Write([]byte{byte(i)})
			conns = append(conns, c)
		}
		for n := 0; n < 3; {
			got, err := sock.receive(true)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				sock.answer(i, append(sock.space(), sock.packet(i)[0], 'x'))
				if n++; n == 1 {
					sock.send()
				}
			}
			sock.stackRest() // as if the socket took no more
			sock.out.Clear()
		}
		for i, c := range conns {
			buf := make([]byte, 10)
			c.SetReadDeadline(time.Now().Add(clients.AskTime))
			if n, err := c.Read(buf); err != nil || n != 2 || buf[0] != byte(i) {
				t.Errorf("%s, client %d: got %q, %v", bound, i, buf[:n], err)
			}
			c.Close()
		}
		sock.close()
	}
}

// TestStackOneClient has a socket take none of the replies for one client, which were to go together: all come later.
func TestStackOneClient(t *testing.T) {
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sock, err := newBatchedSocket(p.(*net.UDPConn))
	if err != nil {
		t.Fatal(err)
	}
	defer sock.close()
	sock.shed(shedding(t))
	c, err := net.Dial("udp", p.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var want []string
	for n := range 4 {
		want = append(want, strings.Repeat("x", 1+n))
		c.Write([]byte{byte(n)})
	}
	got, err := sock.receive(true)
	if got != len(want) || err != nil {
		t.Fatalf("%d queries, %v", got, err)
	}
	for i := range got {
		sock.answer(i, append(sock.space(), want[sock.packet(i)[0]]...))
	}
	if e := sock.out.Send(^uintptr(0)); e != unix.EBADF || sock.out.Sent() != 0 {
		t.Errorf("%v; %d are sent", e, sock.out.Sent())
	}
	sock.out.Skip() // as if the first one went
	want = want[1:]
	sock.stackRest()
	sock.out.Clear()
	var all []string
	for range want {
		buf := make([]byte, 10)
		c.SetReadDeadline(time.Now().Add(clients.AskTime))
		n, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(buf[:n]))
	}
	slices.Sort(all)
	if !slices.Equal(all, want) {
		t.Errorf("got %q", all)
	}
}

// A socket's queue is longer than by default.
func TestQueueIsEnlarged(t *testing.T) {
	size := func(conn *net.UDPConn) (n int) {
		t.Helper()
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	before := size(conn)
	s, err := newBatchedSocket(conn)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if after := size(conn); after <= before {
		t.Errorf("%d octets, were %d", after, before)
	}
}
