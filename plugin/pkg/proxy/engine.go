package proxy

import (
	"context"
	cryptorand "crypto/rand"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// engine runs the exchanges of one Proxy. One lock guards all that is under way, and no
// system call is made under it. The zero engine has neither goroutines nor sockets; these begin with the
// first exchange, and stop waits for all of them.
type engine struct {
	proxy *Proxy

	unsent  eventloop.PerLoop[unsent]
	running sync.WaitGroup // clock, connections, HTTP workers
	ctx     context.Context
	quit    context.CancelCauseFunc // ends ctx; called by stop
	wake    chan struct{}           // makes the clock look again
	ending  barrier                 // inside are those who take exchanges, until these are ended

	mu       sync.Mutex
	together together
	stopped  bool
	ticking  bool  // the clock runs
	wakeAt   int64 // when the clock looks next
	catchUp  int64 // how long readers have when the machine stood still
	reapAt   int64 // when it next looks for idle sockets and connections
	wheel    wheel
	givers   givers // those of the wheel
	udp      udpPool
	spares   spares // has a lock of its own
	streams  streamPool
	peers    map[*Peer]struct{} // those with connections
	https    httpPool
	workers  workerPool
	quic     quicPool
	random   *rand.ChaCha8
	usual    eventloop.Usual // how long replies take, but those of Peers
	doomed   []closer        // to be closed once mu is given back
}

// closer is a socket or connection. close does not wait.
type closer interface{ close() }

const never = math.MaxInt64

func (e *engine) init(p *Proxy) {
	var seed [32]byte
	cryptorand.Read(seed[:]) // never fails
	e.proxy = p
	e.ctx, e.quit = context.WithCancelCause(context.Background())
	e.wake = make(chan struct{}, 1)
	e.wakeAt, e.reapAt, e.catchUp = never, never, catchUp
	e.random = rand.NewChaCha8(seed)
	e.udp.make = udpsockets.New
	e.https.engine, e.https.again = e, never
	e.quic.engine, e.quic.speaks = e, &overQUIC
	if p.protocol == transport.HTTPS3 {
		e.quic.speaks = &overHTTP3
	}
}

// epoch is when the time of all engines begins, which is told in nanoseconds.
var epoch = time.Now()

func (e *engine) now() int64 { return int64(time.Since(epoch)) }

// time is t in the engine's time, never if t is zero.
func (e *engine) time(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return int64(t.Sub(epoch))
}

// unlock gives the lock back, and closes what was doomed under it.
func (e *engine) unlock() {
	var room [4]closer
	doomed := room[:0]
	if len(e.doomed) <= len(room) { // usually; then the memory stays for the next ones
		doomed = append(doomed, e.doomed...)
		clear(e.doomed)
		e.doomed = e.doomed[:0]
	} else {
		doomed, e.doomed = e.doomed, nil
	}
	e.mu.Unlock()
	for _, d := range doomed {
		d.close()
	}
}

// schedule sets when x, which a carrier has just taken or sent, is late. mu is held.
func (e *engine) schedule(x *Exchange, now int64) {
	e.wheel.remove(x)
	if x.GivesWay != 0 && !x.gives && !stays(x) {
		e.givers[x.GivesWay].add(x)
	}
	x.sent = now
	due := tickOf(min(now+int64(x.patience()), x.deadline))
	e.wheel.add(x, due, now>>tickBits)
	e.wakeBy(max(timeOf(due), now))
}

// keepHouse sees to it that idle sockets and connections are looked for. mu is held.
func (e *engine) keepHouse(now int64) {
	if e.reapAt == never {
		e.reapAt = now + e.proxy.transport.conf.Load().reapEvery()
		e.wakeBy(e.reapAt)
	}
}

// wakeBy makes the clock look at time t at the latest. mu is held.
func (e *engine) wakeBy(t int64) {
	if t >= e.wakeAt {
		return
	}
	e.wakeAt = t
	if !e.ticking && !e.stopped {
		e.ticking = true
		ticking.add(e)
		e.running.Go(e.clock)
		return
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// take takes x from its carrier and the wheel. Whoever took it ends it. mu is held.
func (e *engine) take(x *Exchange, now int64) {
	e.wheel.remove(x)
	e.givers[x.GivesWay].remove(x)
	on := x.on
	x.on = nil
	on.drop(x, now)
}

// end tells the owner of x, which was taken or never under way. mu is not held.
func (e *engine) end(x *Exchange, err error) { e.endAt(x, err, 0) }

// endAt is end at a time, 0 if that has to be looked at.
func (e *engine) endAt(x *Exchange, err error, now int64) {
	if x.flips != nil {
		x.flips.Undo(x.Query[wire.HeaderLen:])
	}
	if x.shown != nil {
		x.Query = x.shown.plain
	}
	if x.Err = err; err == nil {
		if now == 0 {
			now = e.now()
		}
		// After its time a reply is read only if the machine stood still: that tells nothing of the upstream.
		x.RTT = min(time.Duration(now-x.sent), x.Timeout)
		if x.To == nil { // else anybody's slow server would have others wait for it
			e.usual.Note(time.Duration(now - x.begun))
		}
		x.proxy.succeeded(x, time.Duration(now-x.begun))
	}
	x.Owner.EndExchange(x)
}

// failure is an exchange that was taken, with its error.
type failure struct {
	x   *Exchange
	err error
}

// endAll ends exchanges that were taken. mu is not held.
func (e *engine) endAll(failures []failure) {
	for _, f := range failures {
		e.end(f.x, f.err)
	}
}

// overslept is how late the clock may be without the machine having stood still: suspended, moved to another host, or
// taken by others. Then replies may lie in the system that nobody has read, and catchUp is the time for that.
const (
	overslept = int64(200 * time.Millisecond)
	catchUp   = int64(100 * time.Millisecond)
)

// clock ends exchanges that are late, and closes what is idle. It sleeps until there is something to do.
func (e *engine) clock() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due, again []*Exchange
	var failures []failure
	var caughtUp int64 // when readers have had their time; 0 if the machine did not stand still
	for {
		select {
		case <-timer.C:
		case <-e.wake:
		case <-e.ctx.Done():
			return
		}
		inside := e.ending.enter()
		e.mu.Lock()
		now := e.now()
		if caughtUp == 0 && now-e.wakeAt > overslept {
			caughtUp = now + e.catchUp
			e.wakeAt = caughtUp
		}
		if now < caughtUp { // it may have been woken for less
			timer.Reset(time.Duration(caughtUp - now))
			e.unlock()
			inside.Done()
			continue
		}
		caughtUp = 0
		due = e.wheel.expire(now>>tickBits, due[:0])
		again, failures = e.overdue(due, now, again[:0], failures[:0])
		if now >= e.reapAt {
			e.reap(now)
		}
		if now >= e.https.again {
			e.https.dispatch(now)
		}
		e.wakeAt = min(e.reapAt, e.https.again)
		if tick, ok := e.wheel.next(); ok {
			e.wakeAt = min(e.wakeAt, timeOf(tick))
		}
		timer.Reset(time.Duration(e.wakeAt - now))
		e.unlock()
		e.endAll(failures)
		for _, x := range again {
			x.retries++
			e.askStream(x, now)
		}
		inside.Done()
		clear(due)
		clear(again)
		clear(failures)
	}
}

// overdue adds those that are due to the ones that are asked again on another connection, or to those that have failed.
// One that hurried, and is not to go elsewhere any more, has the rest of its time. mu is held.
func (e *engine) overdue(due []*Exchange, now int64, again []*Exchange, failures []failure) ([]*Exchange, []failure) {
	for _, x := range due {
		if c := x.hurries(); c != nil {
			e.take(x, now)
			c.mute(now)
			again = append(again, x)
			continue
		}
		if x.To != nil && x.reused && now < x.ends() { // it hurried
			e.wheel.add(x, tickOf(x.ends()), now>>tickBits)
			continue
		}
		failures = append(failures, failure{x, x.on.late(x)})
		e.take(x, now)
	}
	return again, failures
}

// reap closes what is idle for too long or too old. mu is held.
func (e *engine) reap(now int64) {
	conf := e.proxy.transport.conf.Load()
	e.udp.reap(e, conf, now)
	e.pools(func(p *streamPool) { p.reap(e, conf, now) })
	e.https.reap(conf, now)
	for _, s := range e.spares.reap(now - spareTime) {
		e.doomed = append(e.doomed, unused{s})
	}
	e.reapAt = never
	if e.spares.count()+e.udp.n+len(e.streams.conns)+len(e.peers)+len(e.https.conns) > 0 {
		e.reapAt = now + conf.reapEvery()
	}
}

// stop ends all exchanges, closes all sockets and connections, and waits for all goroutines.
func (e *engine) stop() {
	inside := e.ending.enter() // of members that leave meanwhile some exchanges may be taken here
	e.mu.Lock()
	if e.stopped {
		e.unlock()
		inside.Done()
		e.running.Wait()
		return
	}
	e.stopped = true
	e.quit(errStopped)
	failures := e.udp.stop(e)
	e.pools(func(p *streamPool) { failures = append(failures, p.stop(e)...) })
	failures = append(failures, e.https.stop()...)
	for _, s := range e.spares.stop() {
		e.doomed = append(e.doomed, unused{s})
	}
	sockets := e.udp.sockets
	e.unlock()
	ticking.remove(e)
	e.endAll(failures)
	inside.Done()
	if sockets != nil {
		sockets.Stop()
	}
	e.unsent.Each(func(*unsent) {}) // what loops have just read, they are done with
	e.quic.stop()
	e.running.Wait()
}
