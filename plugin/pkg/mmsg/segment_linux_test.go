package mmsg

import (
	"fmt"
	"net"
	"slices"
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

// Datagrams go together as far as their lengths let them, and arrive one by one.
func TestTogether(t *testing.T) {
	needsSegmentation(t)
	for _, tc := range []struct {
		lengths  []int
		messages int
	}{
		{[]int{50}, 0},
		{[]int{50, 50, 50}, 1},
		{[]int{50, 60, 60}, 1},             // the last one may be shorter
		{[]int{50, 60, 70, 80}, 2},         // 80 70, 60 50
		{[]int{60, 50, 60, 50, 60, 50}, 2}, // 60 60 60 50, 50 50
		{[]int{50, 900, 50, 900, 40}, 3},   // longer ones go alone
		{slices.Repeat([]int{longestSegment}, Batch), 1},
	} {
		for family, loopback := range map[string]net.IP{"udp4": net.IPv4(127, 0, 0, 1), "udp6": net.IPv6loopback} {
			t.Run(fmt.Sprint(tc.lengths, " ", family), func(t *testing.T) {
				conn, err := net.ListenUDP(family, &net.UDPAddr{IP: loopback})
				if err != nil && family == "udp6" {
					t.Skip("no IPv6 on loopback: sysctl net.ipv6.conf.lo.disable_ipv6=0")
				}
				server := descriptor(t, conn, err)
				peer, err := net.DialUDP(family, nil, conn.LocalAddr().(*net.UDPAddr))
				client := descriptor(t, peer, err)
				out := Outgoing{Together: true}
				for range 2 { // a batch leaves nothing for the next
					for _, n := range tc.lengths {
						out.Add(saying(n))
					}
					if e := out.Send(client); e != 0 || out.Sent() != out.Len() || out.Refused {
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
					want := slices.Clone(tc.lengths)
					slices.Sort(want)
					got := lengthsOf(t, server)
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Errorf("got %v, want %v", got, want)
					}
				}
			})
		}
	}
}

// Where nothing can be sent, that is not because it was to go together.
func TestTogetherWhereNothingIsSent(t *testing.T) {
	needsSegmentation(t)
	_, client := pair(t)
	if err := unix.Shutdown(int(client), unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	out := Outgoing{Together: true}
	for _, n := range []int{40, 50, 60} {
		out.Add(saying(n))
	}
	if e := out.Send(client); e != unix.EPIPE || out.Refused || out.plan.messages != 3 {
		t.Errorf("%v, refused: %v", e, out.Refused)
	}
}

// Where the kernel does not cut, datagrams go one by one; who skips one skips no more than that.
func TestTogetherRefused(t *testing.T) {
	needsSegmentation(t)
	server, client := pair(t)
	if err := unix.SetsockoptInt(int(client), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil { // such sockets may not
		t.Fatal(err)
	}
	out := Outgoing{Together: true}
	for _, n := range []int{40, 50, 60} {
		out.Add(saying(n))
	}
	if e := out.Send(client); e != 0 || !out.Refused || out.plan.messages != 3 {
		t.Errorf("%v, refused: %v", e, out.Refused)
	}
	if out.Clear(); out.Refused {
		t.Error("it is remembered")
	}
	if got := lengthsOf(t, server); !slices.Equal(got, []int{60, 50, 40}) {
		t.Errorf("got %v", got)
	}
	for _, n := range []int{40, 50, 60} {
		out.Add(saying(n))
	}
	out.arrange()
	out.planned = true
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

// What planning costs, for datagrams of a few lengths.
func BenchmarkArrange(b *testing.B) {
	var out Outgoing
	for i := range Batch {
		out.Add(saying(50 + i%7))
	}
	b.ReportAllocs()
	for b.Loop() {
		out.arrange()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/Batch, "ns/datagram")
}

// TestSegmentControlIsAligned: numbers are written into it, which some processors do at their own addresses only.
func TestSegmentControlIsAligned(t *testing.T) {
	var room segmentControl
	if is, want := unsafe.Alignof(room), unsafe.Alignof(unix.Cmsghdr{}); is < want {
		t.Errorf("it may lie at multiples of %d, and is to at those of %d", is, want)
	}
	if b := putSegment(&room, 77); len(b) > len(room.b) || &b[0] != (*byte)(unsafe.Pointer(&room)) {
		t.Error("the message lies elsewhere")
	}
}
