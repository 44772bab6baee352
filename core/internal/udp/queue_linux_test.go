package udp

import (
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/reusegroup"
)

// Of a queue that has become shorter the oldest are dropped, and told, before the next batch is read; what fits stays.
func TestQueueThatBecomesShorter(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newBatchedSocket(conn)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	dropped := 0
	s.dropped = func() { dropped++ }
	client, err := net.Dial("udp", conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
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
