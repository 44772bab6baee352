package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// listening is a client's socket and a sendQueue of a server's, bound to an address.
func listening(t *testing.T, bound string) (client *net.UDPConn, to netip.AddrPort, box *sendQueue) {
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
	return client, client.LocalAddr().(*net.UDPAddr).AddrPort(), sock.sendQueue
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
		client, to, box := listening(t, bound)
		loop := eventloop.New()
		loop.Enter()
		var want []string
		for i := range 3*batchSize + 5 { // more than go out at once
			b := fmt.Sprintf("%03d", i)
			box.queue([]byte(b), nil, to, 0, loop)
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
	client, to, box := listening(t, "127.0.0.1:0")
	var all sync.WaitGroup
	var want []string
	for i := range 200 {
		b := fmt.Sprintf("%03d", i)
		want = append(want, b)
		all.Go(func() { box.queue([]byte(b), nil, to, 0, nil) })
	}
	all.Wait()
	if all := got(t, client, len(want)); !slices.Equal(all, want) {
		t.Errorf("got %q", all)
	}
}

// What was put in goes out before the socket is closed.
func TestSendQueueIsEmptiedAtTheEnd(t *testing.T) {
	client, to, _ := listening(t, "127.0.0.1:0")
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sock, err := newBatchedSocket(pc.(*net.UDPConn))
	if err != nil {
		t.Fatal(err)
	}
	sock.sendQueue.add([]byte("late"), nil, to, 0, false)
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

// A reply that may come later goes out with a flush, with the next reply that may not, or by itself in a moment.
func TestLater(t *testing.T) {
	client, to, box := listening(t, "127.0.0.1:0")
	read := func(within time.Duration) string {
		b := make([]byte, 100)
		client.SetReadDeadline(time.Now().Add(within))
		n, _ := client.Read(b)
		return string(b[:n])
	}
	box.later([]byte("alone"), nil, to, 0)
	if got := read(5 * time.Second); got != "alone" {
		t.Errorf("got %q by itself", got)
	}
	neverByItself(t)
	box.later([]byte("flushed"), nil, to, 0)
	if got := read(20 * time.Millisecond); got != "" {
		t.Errorf("%q came before the flush", got)
	}
	box.flush()
	if got := read(5 * time.Second); got != "flushed" {
		t.Errorf("got %q with the flush", got)
	}
	box.later([]byte("first"), nil, to, 0)
	box.later([]byte("second"), nil, to, 0)
	box.queue([]byte("third"), nil, to, 0, nil)
	for _, want := range []string{"first", "second", "third"} {
		if got := read(5 * time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// neverByItself makes replies that may come later wait for a flush, however slow the machine is.
func neverByItself(t *testing.T) {
	was := gatherTime
	gatherTime = time.Hour
	t.Cleanup(func() { gatherTime = was })
}

// after does something when it has written the reply, as plugins do that count.
type after struct {
	do    func()
	calls atomic.Int64
}

func (h *after) Name() string { return "after" }

func (h *after) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	err := w.WriteMsg(new(dns.Msg).SetReply(r))
	h.do()
	h.calls.Add(1)
	return 0, err
}

// Who has the reply of a worker finds done what handlers did after it.
func TestReplyAfterHandlers(t *testing.T) {
	neverByItself(t)
	h := &after{do: func() { time.Sleep(5 * time.Millisecond) }}
	u := serving(t, h, Options{One: true})
	for n := range int64(10) {
		ask(t, u.addr, "www.example.", nil)
		if got := h.calls.Load(); got != n+1 {
			t.Fatalf("%d calls were over when %d replies had come", got, n+1)
		}
	}
}

// A handler that goes on and on after its reply does not hold it up.
func TestReplyOfLastingHandler(t *testing.T) {
	over := make(chan struct{})
	h := &after{do: func() { <-over }}
	u := serving(t, h, Options{One: true})
	defer close(over)
	for range 10 {
		ask(t, u.addr, "www.example.", nil)
	}
	if got := h.calls.Load(); got != 0 {
		t.Errorf("%d calls were over", got)
	}
}
