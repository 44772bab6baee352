package mmsg

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// descriptor is that of a socket, which is closed after the test.
func descriptor(t testing.TB, c *net.UDPConn, err error) uintptr {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var fd uintptr
	raw.Control(func(f uintptr) { fd = f })
	return fd
}

func needsSegmentation(t testing.TB) {
	t.Helper()
	if !canSegment() {
		t.Skip("the kernel knows no UDP_SEGMENT: Linux 4.18 does")
	}
}

// segmentation is in force until the end of the test.
func segmentation(t testing.TB, s Segmentation) {
	before := Segmentation(inForce.Load())
	SetSegmentation(s)
	t.Cleanup(func() { SetSegmentation(before) })
}

// lengthsOf is what a socket got.
func lengthsOf(t testing.TB, fd uintptr) (lengths []int) {
	t.Helper()
	in := incoming(t, 1000, 65535)
	for {
		n, e := in.Receive(fd)
		if e == unix.EAGAIN {
			return lengths
		}
		if e != 0 {
			t.Fatal(e)
		}
		for i := range n {
			b := in.Datagram(i)
			if int(b[0])+int(b[1])<<8 != len(b) {
				t.Errorf("%d octets say that they are %d", len(b), int(b[0])+int(b[1])<<8)
			}
			lengths = append(lengths, len(b))
		}
	}
}

// saying is a datagram that says how long it is.
func saying(n int) []byte {
	b := make([]byte, n)
	b[0], b[1] = byte(n), byte(n>>8)
	return b
}

// Datagrams for one address go together as far as their lengths let them, and arrive one by one.
func TestSegments(t *testing.T) {
	needsSegmentation(t)
	longs := slices.Repeat([]int{longestSegment}, Batch)
	for _, tc := range []struct {
		to       string // by number of client, one for each datagram
		lengths  []int
		messages int
		off      bool
	}{
		{to: "000", lengths: []int{50, 50, 50}, messages: 1},
		{to: "000", lengths: []int{50, 60, 60}, messages: 1},            // the last one may be shorter
		{to: "0000", lengths: []int{50, 60, 70, 80}, messages: 2},       // 80 70, 60 50
		{to: "01010", lengths: []int{50, 60, 50, 60, 50}, messages: 2},  // one each
		{to: "0100", lengths: []int{50, 50, 900, 50}, messages: 3},      // longer ones go alone
		{to: "012", lengths: []int{50, 50, 50}, messages: 0},            // nothing to plan
		{to: "0", lengths: []int{50}, messages: 0},                      //
		{to: "00", lengths: []int{900, 50}, messages: 0},                //
		{to: "000", lengths: []int{50, 50, 50}, messages: 0, off: true}, //
		{to: strings.Repeat("0", Batch), lengths: longs, messages: 1},
		{to: strings.Repeat("01234567", Batch/8), lengths: longs, messages: 8},
	} {
		for family, loopback := range map[string]net.IP{"udp4": net.IPv4(127, 0, 0, 1), "udp6": net.IPv6loopback} {
			t.Run(fmt.Sprint(tc.to, " ", tc.lengths, " ", family), func(t *testing.T) {
				if tc.off {
					segmentation(t, SegmentOff)
				}
				local := &net.UDPAddr{IP: loopback}
				conn, err := net.ListenUDP(family, local)
				if err != nil && family == "udp6" {
					t.Skip("no IPv6 on loopback: sysctl net.ipv6.conf.lo.disable_ipv6=0")
				}
				server := descriptor(t, conn, err)
				var clients [10]uintptr
				var names [10]unix.RawSockaddrInet6
				want := map[rune][]int{}
				for i := range clients {
					c, err := net.ListenUDP(family, local)
					clients[i] = descriptor(t, c, err)
					length := uint32(unsafe.Sizeof(names[i]))
					if _, _, e := syscall.RawSyscall(unix.SYS_GETSOCKNAME, clients[i], uintptr(unsafe.Pointer(&names[i])), uintptr(unsafe.Pointer(&length))); e != 0 {
						t.Fatal(e)
					}
				}
				var out Outgoing
				for range 2 { // a batch leaves nothing for the next
					clear(want)
					for i, client := range tc.to {
						h := out.Add(saying(tc.lengths[i]))
						name := &names[client-'0']
						h.Name, h.Namelen = (*byte)(unsafe.Pointer(name)), unix.SizeofSockaddrInet6
						if family == "udp4" {
							h.Namelen = unix.SizeofSockaddrInet4
						}
						want[client] = append(want[client], tc.lengths[i])
					}
					if e := out.Send(server); e != 0 || out.Sent() != out.Len() {
						t.Fatalf("%v, %d of %d sent", e, out.Sent(), out.Len())
					}
					messages := 0
					if out.planned {
						messages = out.plan.messages
					}
					if messages != tc.messages {
						t.Errorf("%d messages, want %d", messages, tc.messages)
					}
					out.Clear()
					for client, want := range want {
						got := lengthsOf(t, clients[client-'0'])
						slices.Sort(got)
						slices.Sort(want)
						if !slices.Equal(got, want) {
							t.Errorf("client %c got %v, want %v", client, got, want)
						}
					}
				}
			})
		}
	}
}

// Where the kernel does not cut, datagrams go one by one; who skips one skips no more than that.
func TestSegmentsRefused(t *testing.T) {
	needsSegmentation(t)
	server, client := pair(t)
	if err := unix.SetsockoptInt(int(client), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil { // such sockets may not
		t.Fatal(err)
	}
	out := Outgoing{Segment: true}
	for _, n := range []int{40, 50, 60} {
		out.Add(saying(n))
	}
	if e := out.Send(client); e != 0 || !out.planned || out.plan.messages != 3 {
		t.Errorf("%v, planned: %v", e, out.planned)
	}
	out.Clear()
	if got := lengthsOf(t, server); !slices.Equal(got, []int{60, 50, 40}) {
		t.Errorf("got %v", got)
	}

	for i := range pauseAfterRefusal + 2 { // then it is tried again
		out.Add(saying(40))
		out.Add(saying(40))
		if e := out.Send(client); e != 0 || out.planned != (i == pauseAfterRefusal) {
			t.Fatalf("batch %d after a refusal: %v, planned: %v", i, e, out.planned)
		}
		out.Clear()
		if got := lengthsOf(t, server); !slices.Equal(got, []int{40, 40}) {
			t.Fatalf("batch %d: got %v", i, got)
		}
	}

	for _, n := range []int{40, 50, 60} {
		out.Add(saying(n))
	}
	out.planned = out.arrange()
	if out.Skip(); out.Sent() != 1 || out.Number(0) != 2 || len(out.Datagram(out.Number(1))) != 50 {
		t.Errorf("%d skipped, then %d octets", out.Sent(), len(out.Datagram(out.Number(1))))
	}
	if e := out.Send(client); e != 0 {
		t.Error(e)
	}
	if got := lengthsOf(t, server); !slices.Equal(got, []int{50, 40}) {
		t.Errorf("got %v", got)
	}
}

// The address of ours that a reply leaves from is part of where it goes.
func TestSegmentsLeaveFromWhereTheyWereAsked(t *testing.T) {
	needsSegmentation(t)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{})
	server := descriptor(t, conn, err)
	if err := unix.SetsockoptInt(int(server), unix.IPPROTO_IP, unix.IP_PKTINFO, 1); err != nil {
		t.Fatal(err)
	}
	client, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	port := conn.LocalAddr().(*net.UDPAddr).Port
	for i := range 8 {
		client.WriteToUDP(saying(20+i), &net.UDPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%2)), Port: port})
	}
	in := incoming(t, 1000, 65535)
	in.WithNames()
	in.WithControls()
	n, e := in.Receive(server)
	if n != 8 || e != 0 {
		t.Fatal(n, e)
	}
	var out Outgoing
	for i := range n {
		info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&in.Control(i)[unix.SizeofCmsghdr]))
		info.Ifindex, info.Spec_dst = 0, info.Addr
		h := out.Add(in.Datagram(i))
		name, length := in.Name(i)
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(name)), length
		h.Control = &in.Control(i)[0]
		h.SetControllen(len(in.Control(i)))
	}
	if e := out.Send(server); e != 0 || !out.planned || out.plan.messages != 4 { // 2 of each address
		t.Fatalf("%v, planned: %v", e, out.planned)
	}
	buf := make([]byte, 100)
	for range n {
		length, from, err := client.ReadFromUDPAddrPort(buf)
		if want := byte(1 + length%2); err != nil || from.Addr().As4()[3] != want {
			t.Errorf("%d octets from %s, %v; want 127.0.0.%d", length, from, err, want)
		}
	}
}

func TestSegmentation(t *testing.T) {
	needsSegmentation(t)
	segmentation(t, SegmentLoopback)
	local, other := netip.MustParseAddr("::ffff:127.0.0.9"), netip.MustParseAddr("192.0.2.1")
	s := SegmentLoopback
	for _, tc := range []struct {
		text         string
		local, other bool
		err          string
	}{
		{"all", true, true, ""},
		{"off", false, false, ""},
		{"loopback", true, false, ""},
		{"on", true, false, "want one of loopback, all, off"},
	} {
		err := s.Set(tc.text)
		if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: %v", tc.text, err)
		}
		if err == nil && s.String() != tc.text || Segments(local) != tc.local || Segments(other) != tc.other {
			t.Errorf("%s: %s, loopback %v, others %v", tc.text, s.String(), Segments(local), Segments(other))
		}
	}
}

// What planning costs: nothing goes together, in the network and on loopback, and clients of four replies each.
func BenchmarkArrange(b *testing.B) {
	for _, bm := range []struct {
		name    string
		net     byte
		clients int
	}{{"network", 192, Batch}, {"loopback", 127, Batch}, {"clients", 127, 8}} {
		b.Run(bm.name, func(b *testing.B) {
			var out Outgoing
			var names [Batch]unix.RawSockaddrInet6
			for i := range Batch {
				name := (*unix.RawSockaddrInet4)(unsafe.Pointer(&names[i]))
				*name = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{bm.net, 0, 0, 1}, Port: uint16(40000 + i%bm.clients*77)}
				h := out.Add(saying(50 + i%3))
				h.Name, h.Namelen = (*byte)(unsafe.Pointer(name)), unix.SizeofSockaddrInet4
			}
			b.ReportAllocs()
			for b.Loop() {
				if out.arrange() != (bm.clients < Batch) {
					b.Fatal("planned otherwise")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/Batch, "ns/datagram")
		})
	}
}
