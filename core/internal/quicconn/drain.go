package quicconn

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/service"
)

const (
	// arrivalTime is how long a client that has begun to connect has, when the server stops, to finish that and to
	// ask. It may be far away, or slow; its query, which comes right behind the handshake, is answered by nobody else.
	arrivalTime = time.Second
	// lastTime is how long those are listened to that keep asking while the server stops. What they ask later is not
	// waited for.
	lastTime = time.Second
	// leastBusy and mostBusy bound busyTime.
	leastBusy, mostBusy = lastTime / 10, lastTime * 9 / 10
	// flushTime is that pause. It is also how long replies are given to leave.
	flushTime = 5 * time.Millisecond
	// arrivalPause is how often is looked whether a client has arrived.
	arrivalPause = time.Millisecond
)

// pauses is how many pauses of arrivalPause are left to wait for. Time that is so counted stands still while the
// process does not run, on a machine that is too busy: what has come meanwhile has not been looked at.
type pauses int

func pausesFor(d time.Duration) pauses { return pauses(d / arrivalPause) }

// pause waits for one arrivalPause. It reports false if none are left, or ctx is over.
func (p *pauses) pause(ctx context.Context) bool {
	if *p <= 0 {
		return false
	}
	*p--
	select {
	case <-ctx.Done():
		return false
	case <-time.After(arrivalPause):
		return true
	}
}

// pause waits so long. It reports false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	p := pausesFor(d)
	for p.pause(ctx) {
	}
	return ctx.Err() == nil
}

// arrival is a connection from its first datagram to its end. Stop looks whether its client is still to be waited for.
type arrival struct {
	from  net.Addr
	conn  atomic.Pointer[Conn] // nil until the library has read what the client says first
	query pauses               // what is left for its query, when the handshake is over
}

// arrivalKey holds the arrival of a connection, in its context.
type arrivalKey struct{}

// arrive notes a connection that begins, until its context ends.
func (t *Transport) arrive(ctx context.Context, client *quic.ClientInfo) (context.Context, error) {
	a := &arrival{from: client.RemoteAddr, query: pausesFor(service.DrainTime)}
	t.mu.Lock()
	t.arrivals[a] = struct{}{}
	t.mu.Unlock()
	t.door.in()
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		delete(t.arrivals, a)
		t.mu.Unlock()
	})
	return context.WithValue(ctx, arrivalKey{}, a), nil
}

// accepted notes that the library has handed over the connection.
func (c *Conn) accepted() {
	if a, ok := c.Context().Value(arrivalKey{}).(*arrival); ok {
		a.conn.Store(c)
	}
}

// unheard reports whether the library has not heard all of the client's first words.
func (a *arrival) unheard() bool { return a.conn.Load() == nil }

// unasked reports whether the client is still to ask: it connects, or has done that so shortly ago that its query may
// be on its way. It is called once in an arrivalPause.
func (a *arrival) unasked() bool {
	if c := a.conn.Load(); c != nil && c.asked.Load() {
		return false
	}
	if a.connecting() {
		return true
	}
	a.query--
	return a.query > 0
}

// connecting reports whether the handshake is not over.
func (a *arrival) connecting() bool {
	c := a.conn.Load()
	if c == nil {
		return true
	}
	select {
	case <-c.HandshakeComplete():
		return false
	default:
		return true
	}
}

// await waits until nobody is left, no pauses are left, or ctx is over.
func (t *Transport) await(ctx context.Context, p *pauses, left func(*arrival) bool) {
	for t.anyone(left) && p.pause(ctx) {
	}
}

func (t *Transport) anyone(left func(*arrival) bool) (any bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.arrivals {
		if left(a) {
			any = true // but all are looked at: for those whose handshake is over one less is left
		}
	}
	return any
}

// Stop takes no more connections, waits until the queries of those that there are are answered, and closes all.
func (t *Transport) Stop(ctx context.Context) error {
	t.Settle(ctx)
	return t.Drain(ctx)
}

// Settle begins to stop the transport: what is on its way is still served, then connections are taken no more. When it
// returns, whoever had begun to connect has connected and has had the time to ask, or was too slow.
func (t *Transport) Settle(ctx context.Context) {
	t.stopping.Store(true)
	t.admission.Close()
	p := pausesFor(arrivalTime)
	pause(ctx, service.DrainTime)
	t.closeDoor(ctx, &p)
	t.await(ctx, &p, (*arrival).unasked)
}

// closeDoor closes the listener. The library refuses who has not been heard then. So that is done in a moment in which
// there is nobody like that, and whoever comes waits before the door; p bounds how long such a moment is waited for.
// Whoever begins later is heard by the transport after, or by nobody, and tries again.
func (t *Transport) closeDoor(ctx context.Context, p *pauses) {
	t.holdDoor(ctx, p)
	if t.passOn() { // nobody comes any more but those whose packets the library has been given, and has not read yet
		t.door.open()
		pause(ctx, flushTime)
		t.holdDoor(ctx, p)
	}
	// The listener is closed when the goroutine that hears clients has ended, which may be waiting before the door.
	time.AfterFunc(arrivalPause, t.door.close)
	_, listener := t.listening()
	listener.Close()
}

// holdDoor holds the door in a moment in which there is nobody who has not been heard.
func (t *Transport) holdDoor(ctx context.Context, p *pauses) {
	for {
		entering := t.door.hold()
		if !entering && !t.anyone((*arrival).unheard) {
			return
		}
		t.door.open()
		if !p.pause(ctx) {
			t.door.hold()
			return
		}
	}
}

// Drain ends what Settle has begun: it waits until queries are answered, and closes all.
func (t *Transport) Drain(ctx context.Context) error {
	var drained sync.WaitGroup
	last := time.Now().Add(lastTime)
	t.mu.Lock()
	for c := range t.conns {
		drained.Go(func() { c.drain(ctx, last) })
	}
	t.mu.Unlock()
	drained.Wait()
	t.mu.Lock()
	for c := range t.conns {
		c.CloseWithError(t.codes.None, "")
	}
	t.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		t.done.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
	err := ctx.Err()
	t.awaitBefore(ctx)
	library, _ := t.listening()
	library.Close()
	t.packets.Close()
	return err
}

// drain closes c when its queries are answered, and nothing more comes; until last, as a query may come at any time, or
// has come only in part: of HTTP/3 the client is told that all that it has begun is answered (RFC 9114 §5.2). A
// client that never pauses would be served for ever: from last on only what it has asked before is still waited for,
// and that the client has taken it. What it asks meanwhile is answered if that is done sooner.
func (c *Conn) drain(ctx context.Context, last time.Time) {
	defer c.CloseWithError(c.transport.codes.None, "")
	late := time.After(time.Until(last))
	busy := busyTime()
	for {
		select {
		case <-c.inflight.Drained():
		case <-late:
			c.ending.Store(true)
			continue
		case <-c.Context().Done():
			return
		case <-ctx.Done():
			return
		}
		quiet, before := quietTime(c.roundTrip(), time.Until(last), busy), c.last.Load()
		// Closing throws away what has not been sent.
		if !pause(ctx, quiet) {
			return
		}
		since, idle := c.IdleSince()
		if idle && since == before && c.open.Load() == 0 || time.Now().After(last) && c.unsent.Load() == 0 {
			return
		}
	}
}

// busyTime is when, before the end, a shorter pause of a client is enough: for each at another moment. They connect
// again at once, and the handshakes of all at one time would hold up what the others ask.
func busyTime() time.Duration { return leastBusy + rand.N(mostBusy-leastBusy) }

// quietTime is how long nothing has to come from a client until it has nothing more to ask, of one that is listened to
// for the time left. One that was told to go learns of that half a round trip later, and what it has asked until then
// is another half on its way. What is not taken any more it asks elsewhere, if it learns of that before the connection
// is closed. As it asks no more, it needs no shorter pause: the end of a long reply has more time to leave. Who cannot
// be told needs a shorter one when less than busy is left.
func quietTime(roundTrip, left, busy time.Duration) time.Duration {
	switch {
	case roundTrip > 0:
		return max(service.DrainTime, min(roundTrip*5/4, left))
	case left < busy:
		return flushTime
	}
	return service.DrainTime
}

// roundTrip is that of a client that was told to go, 0 of one that was not.
func (c *Conn) roundTrip() time.Duration {
	if c.tell.Load() == nil {
		return 0
	}
	return c.ConnectionStats().SmoothedRTT
}

// leaveTime is how long a connection that gives way is kept for queries that came before its client was told.
const leaveTime = 5 * time.Second

// OnLeave has tell called when the client is to go, which its protocol can say. It does not wait.
func (c *Conn) OnLeave(tell func()) { c.tell.Store(&tell) }

// Tell tells all clients to go whose protocol can say that.
func (t *Transport) Tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		c.leave()
	}
}

// leave tells the client to go. It reports false if the protocol cannot.
func (c *Conn) leave() bool {
	tell := c.tell.Load()
	if tell != nil {
		(*tell)()
	}
	return tell != nil
}

// Evict implements conn.Evictable. A client that was told asks on another connection what it would have asked on this
// one. For the moment until it knows, closing would lose that.
func (c *Conn) Evict(now bool) {
	if now || !c.leave() {
		c.CloseWithError(c.transport.codes.None, "idle")
		return
	}
	time.AfterFunc(lastTime, func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		c.drain(ctx, time.Now())
	})
}
