package udp

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coredns/coredns/core/internal/reusegroup"
)

// pair is a batched socket, and one of its clients.
func pair(t *testing.T) (s *batchedSocket, client net.Conn) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = newBatchedSocket(conn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	if client, err = net.Dial("udp", conn.LocalAddr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return s, client
}

// A queue that is found to be empty does not stand, however full each batch was.
func TestQueueOfFullBatches(t *testing.T) {
	s, client := pair(t)
	now := time.Now()
	for d := time.Duration(0); d <= 2*burst; d += lookedAfter / 2 {
		for range batchSize {
			client.Write([]byte("query"))
		}
		if n, err := s.recvmmsg(s.fd); n != batchSize {
			t.Skipf("%d of a batch came at once, %v", n, err)
		}
		if s.shorten(batchSize, true, now.Add(d)); s.surplus {
			t.Fatalf("shorter after %s", d)
		}
		if n, err := s.recvmmsg(s.fd); n != 0 || err != nil {
			t.Fatalf("%d more, %v", n, err)
		}
	}
}

// Who goes on with a socket finds its queue as long as it was, though its last reader had made it shorter.
func TestQueueThatIsPassedOn(t *testing.T) {
	s, _ := pair(t)
	space := func() int {
		n, err := unix.GetsockoptInt(int(s.fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, now := space(), time.Now()
	for d := time.Duration(0); d <= burst; d += lookedAfter / 2 {
		s.shorten(batchSize, true, now.Add(d))
	}
	if space() >= before {
		t.Fatalf("%d octets when it stands, %d before", space(), before)
	}
	if s.readNoMore(); space() != before {
		t.Errorf("%d octets are left of %d", space(), before)
	}
}

// Of a queue that has become shorter the oldest are dropped, and told, before the next batch is read; what fits stays.
func TestQueueThatBecomesShorter(t *testing.T) {
	s, client := pair(t)
	dropped := 0
	s.dropped = func() { dropped++ }
	const sent = 400
	for i := range sent {
		client.Write([]byte{byte(i >> 8), byte(i)})
	}
	if n := reusegroup.Queued(s.fd); n < 2*queueAtLeast {
		t.Skipf("the system has %d octets queued of %d datagrams", n, sent)
	}
	now := time.Now()
	s.shorten(batchSize, true, now)
	if s.surplus {
		t.Fatal("shorter at once")
	}
	for d := lookedAfter / 2; d <= burst; d += lookedAfter / 2 {
		if s.surplus {
			t.Fatalf("shorter before %s", d)
		}
		s.shorten(batchSize, true, now.Add(d))
	}
	first := -1
	read := 0
	for n, err := s.recvmmsg(s.fd); n > 0; n, err = s.recvmmsg(s.fd) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if p := s.packet(i); first < 0 {
				first = int(p[0])<<8 | int(p[1])
			}
		}
		read += n
	}
	if dropped == 0 || first != dropped || dropped+read != sent {
		t.Errorf("of %d, %d were dropped and %d read, from number %d", sent, dropped, read, first)
	}
	if space := 2 * queueAtLeast / 256; read == 0 || read > space { // no datagram takes less
		t.Errorf("%d are left of %d", read, sent)
	}
}
