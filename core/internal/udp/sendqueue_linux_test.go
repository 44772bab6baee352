package udp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/test/clients"
)

// listening is a client's socket and a sendQueue of a server's, bound to an address.
func listening(t *testing.T, bound string) (client *net.UDPConn, to netip.AddrPort, box *sendQueue, is4 bool) {
	t.Helper()
	pc, err := net.ListenPacket("udp", bound)
	if err != nil {
		t.Skip("no socket at ", bound)
	}
	sock, err := newBatchedSocket(pc.(*net.UDPConn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sock.close() })
	home := "127.0.0.1:0"
	if bound == "[::1]:0" {
		home = bound
	}
	c, err := net.ListenPacket("udp", home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	client = c.(*net.UDPConn)
	return client, client.LocalAddr().(*net.UDPAddr).AddrPort(), sock.sendQueue, sock.is4
}

// got is the next datagrams that a client gets, in any order.
func got(t *testing.T, client *net.UDPConn, n int) (all []string) {
	t.Helper()
	buf := make([]byte, longDatagram)
	for range n {
		client.SetReadDeadline(time.Now().Add(clients.AskTime))
		n, err := client.Read(buf)
		if err != nil {
			t.Fatalf("after %d datagrams: %v", len(all), err)
		}
		all = append(all, string(buf[:n]))
	}
	client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := client.Read(buf); err == nil {
		t.Errorf("one too many: %q", buf[:n])
	}
	slices.Sort(all)
	return all
}

func TestSendQueueSendsWithTheBatch(t *testing.T) {
	for _, bound := range []string{"127.0.0.1:0", "[::]:0", "[::1]:0"} {
		client, to, box, is4 := listening(t, bound)
		loop := eventloop.New()
		loop.Enter()
		var want []string
		for i := range 3*batchSize + 5 { // more than go out at once
			b := fmt.Sprintf("%03d", i)
			box.queue([]byte(b), nil, to, is4, loop)
			want = append(want, b)
		}
		loop.Done(0)
		loop.Leave()
		loop.Close()
		if all := got(t, client, len(want)); !slices.Equal(all, want) {
			t.Errorf("%s: got %q", bound, all)
		}
	}
}

func TestSendQueueOfWorkers(t *testing.T) {
	client, to, box, is4 := listening(t, "127.0.0.1:0")
	var all sync.WaitGroup
	var want []string
	for i := range 200 {
		b := fmt.Sprintf("%03d", i)
		want = append(want, b)
		all.Go(func() { box.queue([]byte(b), nil, to, is4, nil) })
	}
	all.Wait()
	if all := got(t, client, len(want)); !slices.Equal(all, want) {
		t.Errorf("got %q", all)
	}
}

// What was put in goes out before the socket is closed.
func TestSendQueueIsEmptiedAtTheEnd(t *testing.T) {
	client, to, _, _ := listening(t, "127.0.0.1:0")
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sock, err := newBatchedSocket(pc.(*net.UDPConn))
	if err != nil {
		t.Fatal(err)
	}
	sock.sendQueue.add([]byte("late"), nil, to, sock.is4)
	sock.close()
	if all := got(t, client, 1); all[0] != "late" {
		t.Errorf("got %q", all)
	}
	if (&datagramPath{socket: sock, to: to}).write([]byte("too late")) != nil {
		t.Log("said so") // nobody is there to be told; it must not wait or panic
	}
}

func BenchmarkSendQueue(b *testing.B) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	sock, err := newBatchedSocket(pc.(*net.UDPConn))
	if err != nil {
		b.Fatal(err)
	}
	defer sock.close()
	sink, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	back := &datagramPath{socket: sock, to: sink.LocalAddr().(*net.UDPAddr).AddrPort()}
	reply := make([]byte, 100)
	b.Run("batch", func(b *testing.B) {
		loop := eventloop.New()
		defer loop.Close()
		b.ReportAllocs()
		for b.Loop() {
			loop.Enter()
			for range batchSize {
				back.queue(reply, loop)
			}
			loop.Leave()
		}
	})
	b.Run("single", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for range batchSize {
				sock.conn.WriteMsgUDPAddrPort(reply, nil, back.to)
			}
		}
	})
}
