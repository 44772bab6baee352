package quicconn

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// greet connects to a server of echo, and says hello. It returns what comes back, or what went wrong.
func greet(ctx context.Context, addr string) string {
	config := clients.Trusting.Clone()
	config.NextProtos = []string{"echo"}
	ctx, cancel := context.WithTimeout(ctx, clients.AskTime)
	defer cancel()
	c, err := quic.DialAddr(ctx, addr, config, nil)
	if err != nil {
		return "connecting: " + err.Error()
	}
	defer c.CloseWithError(0, "")
	stream, err := c.OpenStream()
	if err != nil {
		return "a stream: " + err.Error()
	}
	stream.SetDeadline(time.Now().Add(clients.AskTime))
	io.WriteString(stream, "hello")
	stream.Close()
	b, err := io.ReadAll(stream)
	if err != nil {
		return "an answer: " + err.Error()
	}
	return string(b)
}

// greeted is greet, on a goroutine of its own.
func greeted(t *testing.T, addr string) <-chan string {
	got := make(chan string, 1)
	go func() { got <- greet(t.Context(), addr) }()
	return got
}

// stopAt stops a server when the first datagram of a client has reached it.
func stopAt(t *testing.T, l *coretest.Link, end func() error) <-chan error {
	t.Helper()
	l.Reached(t)
	stopped := make(chan error, 1)
	go func() { stopped <- end() }()
	return stopped
}

// Who is far away and has begun to connect gets an answer when the server stops.
func TestStopWithinHandshake(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	q, end := serve(t, s, e)
	l := coretest.NewLink(t, addrOf(q), coretest.FarAway, 0)
	got := greeted(t, l.Addr())
	stopped := stopAt(t, l, end)
	if got := <-got; got != answer(s, "hello") {
		t.Errorf("got %s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// Time in which the process did not run does not count: nobody has looked at what has come meanwhile.
func TestPausesStandStill(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	q, _ := serve(t, s, e)
	c := dial(t, addrOf(q))
	var a *arrival
	eventually.Holds(t, "the handshake is over", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		for a = range q.arrivals {
			own := a.conn.Load()
			return own != nil && isClosed(own.HandshakeComplete())
		}
		return false
	})
	for range 2 {
		if !a.unasked() {
			t.Fatal("the client is not waited for any more")
		}
		time.Sleep(2 * service.DrainTime) // as a process that is stopped does
	}
	looks := 2
	for a.unasked() {
		looks++
	}
	if looks != int(service.DrainTime/arrivalPause)-1 {
		t.Errorf("it is waited for %d pauses", looks)
	}
	c.CloseWithError(0, "")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// So does one whose first words have come only in part.
func TestStopWithinClientHello(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	q, end := serve(t, s, e)
	l := coretest.NewLink(t, addrOf(q), 0, 1) // keys for the time of quantum computers fill two datagrams
	got := greeted(t, l.Addr())
	stopped := stopAt(t, l, end)
	time.Sleep(2 * service.DrainTime) // is longer than others are waited for
	l.Release()
	if got := <-got; got != answer(s, "hello") {
		t.Errorf("got %s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// What is asked while the server waits for other answers is answered, too, as long as the client does not pause.
func TestStopAnswersTheLast(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	q, end := serve(t, s, e)
	c := dial(t, addrOf(q))
	slow := said(t, c, "slow")
	<-e.begun
	ended := coretest.Stopping(t, end)
	close(e.slow)
	if got := slow(); got != answer(s, "slow") {
		t.Errorf("got %s", got)
	}
	for range 2 { // the server has answered all, and is about to close the connection
		if got := said(t, c, "later")(); got != answer(s, "later") {
			t.Errorf("the last: got %s", got)
		}
	}
	ended()
}

// A client that only says that it wants to connect does not delay the end for long.
func TestStopForgetsWhoIsTooSlow(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	q, end := serve(t, s, e)
	l := coretest.NewLink(t, addrOf(q), 0, 1)
	got := greeted(t, l.Addr())
	begin := time.Now()
	if err := <-stopAt(t, l, end); err != nil {
		t.Error(err)
	}
	if !coretest.Since(begin, arrivalTime) {
		t.Error("it was not waited for")
	}
	l.Release()
	if got := <-got; got == answer(s, "hello") {
		t.Error("it was served")
	}
}

// A client that pauses, but never for long, is left in one of its pauses, not when it is refused at last.
func TestStopFindsShortPauses(t *testing.T) {
	for stoodStill := true; stoodStill; {
		s, e := serviceFor(t), newEcho()
		q, end := serve(t, s, e)
		c := dial(t, addrOf(q))
		stopped := make(chan time.Duration, 1)
		said(t, c, "hello")()
		begin := time.Now()
		go func() {
			if err := end(); err != nil {
				t.Error(err)
			}
			stopped <- time.Since(begin)
		}()
		stoodStill = false
		for before := begin; ; before = time.Now() {
			stream, err := c.OpenStream()
			if err != nil {
				break
			}
			io.WriteString(stream, "hello")
			stream.Close()
			io.ReadAll(stream)
			time.Sleep(2 * flushTime)
			stoodStill = stoodStill || time.Since(before) > service.DrainTime/2
		}
		if took := <-stopped; took > lastTime && !stoodStill {
			t.Errorf("it took %v", took)
		}
	}
}

// A client that is told to go is awaited for a round trip, but no longer than others that keep asking.
func TestQuietTime(t *testing.T) {
	const busy = lastTime / 2
	for _, test := range []struct{ roundTrip, left, want time.Duration }{
		{0, lastTime, service.DrainTime},
		{service.DrainTime / 5, lastTime, service.DrainTime},
		{200 * time.Millisecond, lastTime, 250 * time.Millisecond},
		{3 * time.Second, lastTime, lastTime},
		{200 * time.Millisecond, busy - 1, 250 * time.Millisecond},
		{0, busy - 1, flushTime},
		{0, 0, flushTime},
		{200 * time.Millisecond, 0, service.DrainTime},
	} {
		if got := quietTime(test.roundTrip, test.left, busy); got != test.want {
			t.Errorf("%v of %v: got %v, want %v", test.roundTrip, test.left, got, test.want)
		}
	}
}

// Clients that never pause are not all sent away at one moment.
func TestBusyTime(t *testing.T) {
	moments := map[time.Duration]int{}
	for range 1000 {
		at := busyTime()
		if at < leastBusy || at >= mostBusy {
			t.Fatalf("got %v", at)
		}
		moments[at.Truncate(lastTime/10)]++
	}
	for at, n := range moments {
		if n > 250 {
			t.Errorf("%d of 1000 at %v", n, at)
		}
	}
}
