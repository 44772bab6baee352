package udp

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/pires/go-proxyproto"
	"golang.org/x/sys/unix"

	"github.com/coredns/coredns/test/clients"
)

// serveOn serves h on a socket that is given.
func serveOn(t *testing.T, network, addr string, s *Server) string {
	t.Helper()
	p, err := net.ListenPacket(network, addr)
	if err != nil {
		t.Skipf("no %s here: %v", network, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.ServePacket(p) })
	t.Cleanup(func() { s.Stop(); wg.Wait() })
	return p.LocalAddr().String()
}

// Replies leave from the address that was asked, on sockets bound to all addresses of one family or both, and in both
// lanes.
func TestReplySource(t *testing.T) {
	for _, bind := range []struct{ network, addr string }{{"udp4", "0.0.0.0:0"}, {"udp", "[::]:0"}, {"udp6", "[::]:0"}, {"udp4", "127.0.0.3:0"}} {
		s, err := NewServer("dns://:0", []*Config{block1(".", new(laneHandler))})
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(serveOn(t, bind.network, bind.addr, s))
		for _, to := range []string{"127.0.0.3", "127.0.0.1", "::1"} {
			switch {
			case bind.network == "udp4" && to == "::1", bind.network == "udp6" && to != "::1", strings.HasPrefix(bind.addr, "127") && to != "127.0.0.3":
				continue
			}
			// A connected socket hears of no other address.
			for _, name := range []string{"local.", "block.", "unpack."} {
				r := ask(t, "udp", net.JoinHostPort(to, port), name, func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA })
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
	h := handler{"length", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		got <- len(r.IsEdns0().Option[0].(*dns.EDNS0_PADDING).Padding)
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	}}
	_, udp, _ := running(t, block1(".", h))
	for _, n := range []int{0, querySpace - 32, querySpace - 28, querySpace, 1500, 9000, 65000} {
		ask(t, "udp", udp, ".", func(m *dns.Msg) {
			m.SetEdns0(4096, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, n)}}
		})
		if length := <-got; length != n {
			t.Errorf("padding of %d octets, want %d", length, n)
		}
	}
}

func socketsAt(t *testing.T, port string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		t.Skip("the list of sockets cannot be read here")
	}
	var p int
	fmt.Sscan(port, &p)
	inodes := map[string]bool{} // the list may tell one twice
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); strings.HasSuffix(f[1], fmt.Sprintf(":%04X", p)) && f[2] == "00000000:0000" {
			inodes[f[9]] = true
		}
	}
	return len(inodes)
}

// The sockets of an address pass from one server to the next, and all are closed with the last.
func TestSocketsPassOn(t *testing.T) {
	for _, consolidate = range []bool{true, false} {
		t.Run(fmt.Sprintf("consolidate %v", consolidate), socketsPassOn)
	}
	consolidate = true
}

func socketsPassOn(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	first, err := NewServer("dns://127.0.0.1:0", []*Config{block1(".", new(laneHandler))})
	if err != nil {
		t.Fatal(err)
	}
	p, err := first.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	addr := p.LocalAddr().String()
	_, port, _ := net.SplitHostPort(addr)
	var wg sync.WaitGroup
	wg.Go(func() { first.ServePacket(p) })
	eventually(t, "all sockets are open", func() bool { return socketsAt(t, port) == runtime.GOMAXPROCS(0) })

	// One client for each few queries, so that all sockets get some, unless one loop serves all.
	stop := make(chan struct{})
	var lost, asked int
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			c := &dns.Client{Timeout: time.Second}
			asked++
			if _, _, err := c.Exchange(new(dns.Msg).SetQuestion("www.", dns.TypeA), addr); err != nil {
				lost++
			}
		}
	})
	server := first
	for range 20 {
		next, err := NewServer("dns://127.0.0.1:0", []*Config{block1(".", new(laneHandler))})
		if err != nil {
			t.Fatal(err)
		}
		handed := duplicate(p.(*net.UDPConn)) // as caddy hands it over
		wg.Go(func() { next.ServePacket(handed) })
		eventually(t, "the next server serves", func() bool { return len(next.atWork()) == 1 })
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "there are as many sockets as before", func() bool { return socketsAt(t, port) == runtime.GOMAXPROCS(0) })
		server, p = next, handed
	}
	close(stop)
	clients.Wait()
	if lost > 0 || asked < 20 {
		t.Errorf("%d of %d queries were lost", lost, asked)
	}
	server.Stop()
	wg.Wait()
	eventually(t, "no socket is left", func() bool { return socketsAt(t, port) == 0 })
}

func (s *Server) atWork() []stopper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// TestProxyIsBatched has a listener with the PROXY protocol read its packets in batches, as others.
func TestProxyIsBatched(t *testing.T) {
	cfg := blockFor(t, "dns", who{})
	cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
	s := serving(t, cfg)
	eventually(t, "both transports serve", func() bool { return len(s.base().atWork()) == 2 })
	for _, running := range s.base().atWork() {
		if u, ok := running.(*Transport); ok {
			if _, ok := u.sockets[0].(*batchedSocket); !ok || u.proxy == nil || len(u.sockets) != runtime.GOMAXPROCS(0) {
				t.Errorf("%d sockets of %T, proxy %v", len(u.sockets), u.sockets[0], u.proxy)
			}
		}
	}
}

// TestStackRest has a socket take the first of three replies only: the others come all the same, later, from the address that was asked.
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
		sock.shed(&Server{Addr: freshAddr(t)})
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
	sock.shed(&Server{Addr: freshAddr(t)})
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
	if e := sock.out.Send(^uintptr(0)); e != unix.EBADF || sock.out.Number(0) != len(want)-1 {
		t.Errorf("%v; reply %d is the first", e, sock.out.Number(0))
	}
	sock.out.Skip() // as if the first one went
	want = want[:len(want)-1]
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
