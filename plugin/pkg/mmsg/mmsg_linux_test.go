package mmsg

import (
	"bytes"
	"net"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pair is a socket that listens, and one that is connected to it.
func pair(t testing.TB) (server, client uintptr) {
	t.Helper()
	local := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	conn, err := net.ListenUDP("udp4", local)
	server = descriptor(t, conn, err)
	if err := unix.SetsockoptInt(int(server), unix.IPPROTO_IP, unix.IP_PKTINFO, 1); err != nil {
		t.Fatal(err)
	}
	peer, err := net.DialUDP("udp4", nil, conn.LocalAddr().(*net.UDPAddr))
	client = descriptor(t, peer, err)
	return server, client
}

func incoming(t testing.TB, near, most int) *Incoming {
	in := NewIncoming(near, most)
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// Datagrams of all lengths arrive whole, with who sent them and to where, and go back the same way.
func TestRoundTrip(t *testing.T) {
	const near = 100
	server, client := pair(t)
	in, back := incoming(t, near, 65535), incoming(t, near, 65535)
	in.WithNames()
	in.WithControls()
	var out Outgoing
	if n, e := in.Receive(server); n > 0 || e != unix.EAGAIN {
		t.Fatalf("%d datagrams and %v from an empty queue", n, e)
	}
	for range 2 { // the memory is used again
		lengths := []int{1, near - 1, near, near + 1, 5000, 65000}
		for i, n := range lengths {
			out.Add(bytes.Repeat([]byte{byte('a' + i)}, n))
		}
		if e := out.Send(client); e != 0 || out.Sent() != out.Len() || out.Len() != len(lengths) {
			t.Fatalf("%v, %d of %d sent", e, out.Sent(), out.Len())
		}
		out.Clear()
		n, e := in.Receive(server)
		if n != len(lengths) || e != 0 {
			t.Fatalf("%d datagrams, %v", n, e)
		}
		for i, want := range lengths {
			b := in.Datagram(i)
			if !bytes.Equal(b, bytes.Repeat([]byte{byte('a' + i)}, want)) {
				t.Errorf("%d octets became %d", want, len(b))
			}
			if (*unix.Cmsghdr)(unsafe.Pointer(&in.Control(i)[0])).Type != unix.IP_PKTINFO {
				t.Errorf("control message % x", in.Control(i))
			}
			name, length := in.Name(i)
			h := out.Add(append([]byte(nil), b...))
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(name)), length
		}
		if e := out.Send(server); e != 0 {
			t.Fatal(e)
		}
		out.Clear()
		for i := range out.headers {
			out.headers[i].Name, out.headers[i].Namelen = nil, 0
		}
		if n, e := back.Receive(client); n != len(lengths) || e != 0 || len(back.Datagram(5)) != 65000 || back.Control(5) != nil {
			t.Fatalf("%d datagrams came back, %v", n, e)
		}
	}
}

// What cannot be sent is left out by who sees the error, and the others go on.
func TestSkip(t *testing.T) {
	server, client := pair(t)
	var out Outgoing
	for _, n := range []int{10, 65530, 11} { // the second one is too long for IPv4
		out.Add(make([]byte, n))
	}
	if e := out.Send(client); e != syscall.EMSGSIZE || out.Sent() != 1 || len(out.Datagram(1)) != 65530 {
		t.Fatalf("%v after %d", e, out.Sent())
	}
	out.Skip()
	if e := out.Send(client); e != 0 || out.Sent() != 3 {
		t.Fatalf("%v after %d", e, out.Sent())
	}
	in := incoming(t, 100, 200)
	if n, _ := in.Receive(server); n != 2 || len(in.Datagram(1)) != 11 {
		t.Errorf("%d datagrams came", n)
	}
}

// Batches cost no memory, and datagrams that go together half of the time.
func BenchmarkBatch(b *testing.B) {
	for name, segment := range map[string]bool{"alone": false, "together": true} {
		b.Run(name, func(b *testing.B) {
			if segment {
				needsSegmentation(b)
			}
			server, client := pair(b)
			in := incoming(b, 1100, 65535)
			out := Outgoing{Together: segment}
			packet := make([]byte, 60)
			send := func() {
				for range Batch {
					out.Add(packet)
				}
				if e := out.Send(client); e != 0 || out.planned != segment {
					b.Fatal(e, out.planned)
				}
				out.Clear()
				if n, e := in.Receive(server); n != Batch {
					b.Fatal(n, e)
				}
			}
			send() // the first one makes the plan
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
	}
}
