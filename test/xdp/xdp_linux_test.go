package xdp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/afxdp"
	whole "github.com/coredns/coredns/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// count is the value of a counter of ours, of all interfaces.
func count(t testing.TB, name string) (n int) {
	t.Helper()
	all, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == "coredns_xdp_"+name+"_total" {
			for _, m := range f.GetMetric() {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// counted is how many datagrams were read, and sent, past the kernel while f ran.
func counted(t testing.TB, f func()) (received, sent int) {
	r, s := count(t, "received"), count(t, "sent")
	f()
	return count(t, "received") - r, count(t, "sent") - s
}

// zoneFile is a zone with a short, a middle and a long answer.
func zoneFile(t testing.TB) string {
	name := filepath.Join(t.TempDir(), "db.example")
	text := "$ORIGIN example.\n@ 60 SOA ns h 1 60 60 60 60\n@ NS ns\nns A 192.0.2.53\nwww A 192.0.2.1\nwww TXT short\nmiddle TXT" +
		strings.Repeat(` "`+strings.Repeat("x", 250)+`"`, 4) + "\nlong TXT" + strings.Repeat(` "`+strings.Repeat("x", 250)+`"`, 8) + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// start starts a server for the test.
func start(t testing.TB, corefile string) *caddy.Instance {
	t.Helper()
	i, err := whole.CoreDNSServer(corefile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(i) })
	return i
}

// end ends a server with all that its plugins have, such as the program on the interface.
func end(i *caddy.Instance) {
	i.ShutdownCallbacks()
	i.Stop()
}

// question asks for a name of the zone, with a buffer for long answers.
func question(name string, qtype uint16) *dns.Msg {
	return new(dns.Msg).SetQuestion(name, qtype).SetEdns0(4096, false)
}

// exchange asks on a connection.
func exchange(t testing.TB, c net.Conn, m *dns.Msg) *dns.Msg {
	t.Helper()
	conn := &dns.Conn{Conn: c, UDPSize: 65535}
	c.SetDeadline(time.Now().Add(3 * time.Second))
	if err := conn.WriteMsg(m); err != nil {
		t.Fatal(err)
	}
	r, err := conn.ReadMsg()
	if err != nil {
		t.Fatalf("no reply of %s: %v", c.RemoteAddr(), err)
	}
	if r.Id != m.Id {
		t.Fatalf("reply %d to query %d", r.Id, m.Id)
	}
	return r
}

// begin asks on a connection until the query is read past the kernel: the server opens its sockets for that when those of
// the kernel are read already.
func begin(t testing.TB, c net.Conn) {
	t.Helper()
	for range 100 {
		if received, _ := counted(t, func() { exchange(t, c, question("www.example.", dns.TypeA)) }); received > 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("nothing is read past the kernel")
}

// Queries for all kinds of addresses are read and answered past the kernel; what does not fit goes through it.
func TestAnswers(t *testing.T) {
	zone := zoneFile(t)
	upstream := start(t, fmt.Sprintf("example:0 {\nbind 127.0.0.1\nfile %s\n}\n", zone))
	udp, _ := whole.CoreDNSServerPorts(upstream, 0)
	for _, tc := range []struct {
		name, corefile, addr string
		q                    *dns.Msg
		sent                 int // past the kernel, too
	}{
		{"one address", "bind 198.18.0.1\nfile " + zone, server4, question("www.example.", dns.TypeA), 1},
		{"the interface", "bind xs\nfile " + zone, second4, question("www.example.", dns.TypeA), 1},
		{"all addresses", "file " + zone, second4, question("www.example.", dns.TypeA), 1},
		{"all of IPv4", "bind 0.0.0.0\nfile " + zone, server4, question("www.example.", dns.TypeA), 1},
		{"IPv6", "bind 2001:2::1\nfile " + zone, server6, question("www.example.", dns.TypeA), 1},
		{"all addresses, IPv6", "file " + zone, server6, question("www.example.", dns.TypeA), 1},
		{"link-local", "bind fe80::1%xs\nfile " + zone, serverLink + "%" + clientEnd, question("www.example.", dns.TypeA), 1},
		{"all addresses, link-local", "file " + zone, serverLink + "%" + clientEnd, question("www.example.", dns.TypeA), 1},
		{"a long reply", "bind 198.18.0.1\nfile " + zone, server4, question("long.example.", dns.TypeTXT), 0},
		{"a long reply, all addresses", "file " + zone, second4, question("long.example.", dns.TypeTXT), 0},
		{"a long reply, all of IPv4", "bind 0.0.0.0\nfile " + zone, second4, question("long.example.", dns.TypeTXT), 0},
		{"a long reply, IPv6", "file " + zone, server6, question("long.example.", dns.TypeTXT), 0},
		{"a long reply, link-local", "file " + zone, serverLink + "%" + clientEnd, question("long.example.", dns.TypeTXT), 0},
		{"the message lane", "file " + zone, second4, new(dns.Msg).SetNotify("example."), 0},
		{"the message lane, IPv6", "file " + zone, server6, new(dns.Msg).SetNotify("example."), 0},
		{"a miss", "forward . " + udp, second4, question("www.example.", dns.TypeA), 1},
		{"a miss, IPv6", "forward . " + udp, server6, question("www.example.", dns.TypeA), 1},
		{"a long miss", "forward . " + udp, second4, question("long.example.", dns.TypeTXT), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			port := freePort(t)
			start(t, fmt.Sprintf("example:%s {\nxdp %s\n%s\n}\n", port, serverEnd, tc.corefile))
			c := dial(t, "udp", net.JoinHostPort(tc.addr, port))
			begin(t, c)
			var r *dns.Msg
			received, sent := counted(t, func() { r = exchange(t, c, tc.q) })
			if tc.q.Opcode == dns.OpcodeQuery && (r.Rcode != dns.RcodeSuccess || len(r.Answer) != 1 || r.Truncated) {
				t.Errorf("got %v", r)
			}
			if received != 1 || sent != tc.sent {
				t.Errorf("%d read and %d sent past the kernel, want 1 and %d", received, sent, tc.sent)
			}
		})
	}
}

// freePort is a port that nobody has in this namespace, where none but the tests' servers are.
func freePort(t testing.TB) string {
	t.Helper()
	c, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, port, _ := net.SplitHostPort(c.LocalAddr().String())
	return port
}

// What comes for another port, or address, or over TCP, is the kernel's; so is all when the server has ended.
func TestLeavesTheRest(t *testing.T) {
	zone := zoneFile(t)
	port, other := freePort(t), freePort(t)
	only4 := freePort(t)
	file := "file " + zone + "\n}\n"
	i := start(t, "example:"+port+" {\nbind 198.18.0.1\nxdp "+serverEnd+"\n"+file+"example:"+other+" {\n"+file+
		"example:"+port+" {\nbind 198.18.0.3\n"+file+
		"example:"+only4+" {\nbind 0.0.0.0\nxdp "+serverEnd+"\n"+file+"example:"+only4+" {\nbind 2001:2::1\n"+file)
	begin(t, dial(t, "udp", server4+":"+port))
	begin(t, dial(t, "udp", server4+":"+only4))
	for _, tc := range []struct {
		network, addr string
		received      int
	}{
		{"udp", server4 + ":" + port, 1},
		{"udp", second4 + ":" + port, 0},
		{"udp", server4 + ":" + other, 0},
		{"tcp", server4 + ":" + port, 0},
		{"udp", second4 + ":" + only4, 1},
		{"udp", "[" + server6 + "]:" + only4, 0},
	} {
		c := dial(t, tc.network, tc.addr)
		received, _ := counted(t, func() { exchange(t, c, question("www.example.", dns.TypeA)) })
		if received != tc.received {
			t.Errorf("%s %s: %d read past the kernel, want %d", tc.network, tc.addr, received, tc.received)
		}
	}
	if !hasProgram(t) {
		t.Error("no program on the interface")
	}
	next, err := i.Restart(whole.NewInput(fmt.Sprintf("example:%s {\nbind 198.18.0.1\nfile %s\n}\n", port, zone)))
	if err != nil {
		t.Fatal(err)
	}
	defer end(next)
	c := dial(t, "udp", server4+":"+port)
	if received, _ := counted(t, func() { exchange(t, c, question("www.example.", dns.TypeA)) }); received != 0 {
		t.Error("read past the kernel still")
	}
	for end := time.Now().Add(5 * time.Second); hasProgram(t); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the interface has the program still")
		}
	}
}

// hasProgram reports whether a program sees what comes on the server's end.
func hasProgram(t testing.TB) bool {
	t.Helper()
	out, err := exec.Command("ip", "link", "show", serverEnd).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Contains(string(out), "prog/xdp")
}

// A configuration that takes another one's place loses no query: with xdp, to one without it, and back.
func TestReload(t *testing.T) {
	zone, port := zoneFile(t), freePort(t)
	corefile := func(xdp string) string {
		return fmt.Sprintf("example:%s {\nbind 198.18.0.1\n%s\nfile %s\n}\n", port, xdp, zone)
	}
	i, err := whole.CoreDNSServer(corefile("xdp " + serverEnd))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { end(i) }()
	var asked, lost atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 8 {
		c := dial(t, "udp", server4+":"+port)
		clients.Go(func() {
			conn := &dns.Conn{Conn: c}
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked.Add(1)
				c.SetDeadline(time.Now().Add(2 * time.Second))
				if conn.WriteMsg(question("www.example.", dns.TypeA)) != nil {
					lost.Add(1)
				} else if _, err := conn.ReadMsg(); err != nil {
					lost.Add(1)
				}
			}
		})
	}
	received, _ := counted(t, func() {
		for n := range 12 {
			time.Sleep(50 * time.Millisecond)
			xdp := "xdp " + serverEnd
			if n%3 == 1 {
				xdp = ""
			}
			next, err := i.Restart(whole.NewInput(corefile(xdp)))
			if err != nil {
				t.Fatal(err)
			}
			i = next
			if n%4 == 3 { // one that fails changes nothing
				if _, err := i.Restart(whole.NewInput(corefile("xdp " + serverEnd + " none0"))); err == nil {
					t.Error("a missing interface was taken")
				}
			}
		}
	})
	close(stop)
	clients.Wait()
	if lost.Load() > 0 || received == 0 || asked.Load() < 100 {
		t.Errorf("%d of %d queries lost, %d read past the kernel", lost.Load(), asked.Load(), received)
	}
}

// What cannot be had is told at the start.
func TestRefused(t *testing.T) {
	for names, want := range map[string]string{
		"none0":           `plugin/xdp: Corefile:2: interface "none0": `,
		"lo":              `interface "lo": `,
		serverEnd + " lo": `interface "lo": `,
	} {
		i, err := whole.CoreDNSServer(fmt.Sprintf("example:%s {\nxdp %s\nwhoami\n}\n", freePort(t), names))
		if err == nil {
			i.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("xdp %s: got error %v, want %q", names, err, want)
		}
	}
	// Nothing is left of those that were opened.
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nxdp %s\nwhoami\n}\n", port, serverEnd))
	exchange(t, dial(t, "udp", server4+":"+port), question("www.example.", dns.TypeA))
}

// frame is an Ethernet frame with a query in UDP over IPv4. edit changes it before the checksum of IPv4 is made.
func frame(t testing.TB, dst, src net.HardwareAddr, port uint16, q *dns.Msg, edit func(f []byte) []byte) []byte {
	t.Helper()
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	f := append(append([]byte(nil), dst...), src...)
	f = append(f, 0x08, 0)
	f = append(f, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0)
	f = append(f, net.ParseIP(clientIP4).To4()...)
	f = append(f, net.ParseIP(server4).To4()...)
	f = binary.BigEndian.AppendUint16(f, 5353)
	f = binary.BigEndian.AppendUint16(f, port)
	f = binary.BigEndian.AppendUint16(f, uint16(8+len(b)))
	f = append(f, 0, 0)
	f = append(f, b...)
	binary.BigEndian.PutUint16(f[16:], uint16(len(f)-14))
	if edit != nil {
		f = edit(f)
	}
	var s uint32
	for i := 14; i < 34; i += 2 {
		s += uint32(binary.BigEndian.Uint16(f[i:]))
	}
	for s>>16 > 0 {
		s = s>>16 + s&0xffff
	}
	binary.BigEndian.PutUint16(f[24:], ^uint16(s))
	return f
}

// Frames that are no plain datagram for us are left to the kernel, or dropped, and never answered past it.
func TestFrames(t *testing.T) {
	zone, port := zoneFile(t), freePort(t)
	start(t, fmt.Sprintf("example:%s {\nbind 198.18.0.1\nxdp %s\nfile %s\n}\n", port, serverEnd, zone))
	begin(t, dial(t, "udp", server4+":"+port))
	var number uint16
	fmt.Sscan(port, &number)
	var fd int
	var src net.HardwareAddr
	asClient(t, func() error {
		i, err := net.InterfaceByName(clientEnd)
		if err != nil {
			return err
		}
		src = i.HardwareAddr
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index})
	})
	defer unix.Close(fd)
	i, err := net.InterfaceByName(serverEnd)
	if err != nil {
		t.Fatal(err)
	}
	dst := i.HardwareAddr
	for _, tc := range []struct {
		name                    string
		edit                    func([]byte) []byte
		received, sent, dropped int
	}{
		{"plain", nil, 1, 1, 0},
		{"padded", func(f []byte) []byte { return append(f, 0, 0, 0, 0) }, 1, 1, 0},
		{"traffic class", func(f []byte) []byte { f[15] = 0xb8; return f }, 1, 1, 0},
		{"must not be fragmented", func(f []byte) []byte { f[20] = 0x40; return f }, 1, 1, 0},
		{"another host's", func(f []byte) []byte { f[5] ^= 1; return f }, 0, 0, 0},
		{"for all hosts", func(f []byte) []byte { copy(f, "\xff\xff\xff\xff\xff\xff"); return f }, 0, 0, 0},
		{"first fragment", func(f []byte) []byte { f[20] = 0x20; return f }, 0, 0, 0},
		{"later fragment", func(f []byte) []byte { f[21] = 1; return f }, 0, 0, 0},
		{"another protocol", func(f []byte) []byte { f[23] = 6; return f }, 0, 0, 0},
		{"another type of frame", func(f []byte) []byte { f[12] = 0x88; return f }, 0, 0, 0},
		{"options", func(f []byte) []byte { f[14] = 0x46; return f }, 0, 0, 0},
		{"shorter than a header", func(f []byte) []byte { return f[:14+20+8+11] }, 0, 0, 0},
		{"longer in IPv4 than it is", func(f []byte) []byte { f[17] += 9; return f }, 0, 0, 1},
		{"longer in UDP than in IPv4", func(f []byte) []byte { f[39]++; return f }, 0, 0, 1},
		{"shorter in UDP than its header", func(f []byte) []byte { f[39] = 7; return f }, 0, 0, 1},
		{"wrong checksum", func(f []byte) []byte { f[41] = 1; return f }, 0, 0, 1},
		{"from nowhere", func(f []byte) []byte { copy(f[26:], "\x00\x00\x00\x00"); return f }, 0, 0, 1},
		{"from a group", func(f []byte) []byte { copy(f[26:], "\xe0\x00\x00\x01"); return f }, 0, 0, 1},
		{"from all", func(f []byte) []byte { copy(f[26:], "\xff\xff\xff\xff"); return f }, 0, 0, 1},
		{"from no port", func(f []byte) []byte { f[34], f[35] = 0, 0; return f }, 0, 0, 1},
		{"a reply", func(f []byte) []byte { f[44] |= 0x80; return f }, 1, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			received, sent, dropped := count(t, "received"), count(t, "sent"), count(t, "dropped")
			f := frame(t, dst, src, number, question("www.example.", dns.TypeA), tc.edit)
			if _, err := unix.Write(fd, f); err != nil {
				t.Fatal(err)
			}
			// What is asked behind it on either queue is answered behind it: the frame has been looked at.
			const behind = 16
			for range behind {
				exchange(t, dial(t, "udp", server4+":"+port), question("www.example.", dns.TypeA))
			}
			got := [3]int{count(t, "received") - received - behind, count(t, "sent") - sent - behind, count(t, "dropped") - dropped}
			if want := [3]int{tc.received, tc.sent, tc.dropped}; got != want {
				t.Errorf("%d read, sent and dropped, want %d", got, want)
			}
		})
	}
}

// Each queue has a socket of its own, and each answers what came on it.
func TestQueues(t *testing.T) {
	port := freePort(t)
	target, err := afxdp.Listen(serverEnd, netip.MustParseAddrPort(server4+":"+port), true)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if len(target.Sockets) != 2 {
		t.Fatalf("%d sockets for two queues", len(target.Sockets))
	}
	const clients = 64
	var all [clients]net.Conn
	for i := range all {
		all[i] = dial(t, "udp", server4+":"+port)
		if _, err := fmt.Fprintf(all[i], "from client %d", i); err != nil {
			t.Fatal(err)
		}
	}
	var got [2]int
	for end := time.Now().Add(5 * time.Second); got[0]+got[1] < clients && time.Now().Before(end); {
		for i, s := range target.Sockets {
			for _, d := range s.Receive() {
				got[i]++
				if !s.Answer(&d, append(append(s.Space(), "for you: "...), d.Payload...)) {
					t.Error("no frame for a reply")
				}
			}
			s.Send()
		}
	}
	if got[0] == 0 || got[1] == 0 || got[0]+got[1] != clients {
		t.Errorf("%v datagrams came, want %d on both", got, clients)
	}
	for i, c := range all {
		b := make([]byte, 100)
		c.SetReadDeadline(time.Now().Add(3 * time.Second))
		n, err := c.Read(b)
		if want := fmt.Sprintf("for you: from client %d", i); err != nil || string(b[:n]) != want {
			t.Errorf("got %q, %v, want %q", b[:n], err, want)
		}
	}
}

// Frames go round: many more datagrams than there are frames are answered, and one batch after the other.
func TestFramesGoRound(t *testing.T) {
	port := freePort(t)
	target, err := afxdp.Listen(serverEnd, netip.MustParseAddrPort(server4+":"+port), true)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	c := dial(t, "udp", server4+":"+port)
	answered := 0
	const batches = 1000
	for range batches {
		for range afxdp.Batch {
			if _, err := fmt.Fprint(c, "a question that is long enough"); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range target.Sockets {
			for batch := s.Receive(); len(batch) > 0; batch = s.Receive() {
				for i := range batch {
					if !s.Answer(&batch[i], append(s.Space(), "yes"...)) {
						t.Fatalf("no frame for a reply after %d", answered)
					}
					answered++
				}
				s.Send()
			}
		}
	}
	if answered != batches*afxdp.Batch {
		t.Errorf("%d of %d answered", answered, batches*afxdp.Batch)
	}
}

// Who leaves makes room for others: there is no end to reloads.
func TestManyReloads(t *testing.T) {
	address := netip.MustParseAddrPort(server4 + ":" + freePort(t))
	d, err := afxdp.Open(serverEnd)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for n := range 600 {
		target, err := afxdp.Listen(serverEnd, address, true)
		if err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Two servers on one interface get their own: the one for an address before the one for all.
func TestTwoServers(t *testing.T) {
	port := freePort(t)
	template := "template IN A {\nanswer \"{{ .Name }} 1 IN A 192.0.2.%d\"\n}\n"
	start(t, fmt.Sprintf("example:%[1]s {\nbind 198.18.0.1\nxdp %[2]s\n"+fmt.Sprintf(template, 1)+"}\nexample:%[1]s {\nbind 0.0.0.0\nxdp %[2]s\n"+
		fmt.Sprintf(template, 2)+"}\n", port, serverEnd))
	begin(t, dial(t, "udp", server4+":"+port))
	begin(t, dial(t, "udp", second4+":"+port))
	for addr, want := range map[string]string{server4: "192.0.2.1", second4: "192.0.2.2"} {
		c := dial(t, "udp", addr+":"+port)
		received, _ := counted(t, func() {
			r := exchange(t, c, question("www.example.", dns.TypeA))
			if len(r.Answer) != 1 || r.Answer[0].(*dns.A).A.String() != want {
				t.Errorf("%s: got %v, want %s", addr, r, want)
			}
		})
		if received != 1 {
			t.Errorf("%s: %d read past the kernel", addr, received)
		}
	}
}
