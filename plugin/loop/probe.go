package loop

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/neterr"

	"github.com/miekg/dns"
)

// prober sends the probe of one Loop, on a goroutine that ends when the Loop need not look any more. It also does what is to be done about
// a loop, on that goroutine.
type prober struct {
	loop    *Loop
	addr    string
	cancel  context.CancelFunc
	running sync.WaitGroup
	found   chan sighted // one at most; sending is over then

	breaks bool          // loops are broken
	file   string        // a resolv.conf(5) that upstreams may be from
	look   time.Duration // between two looks whether a loop is still there

	before time.Duration // how long to wait before the first probe
	window time.Duration // the probe must be answered in it
	again  time.Duration // between a failure and the next try
	notYet time.Duration // the same, as long as nobody listens
	linger time.Duration // how long to look after the answer
}

// handOver is how long servers of the configuration before may answer, at most, when the plugins of the next one start. They know nothing of
// its loops.
const handOver = 2 * time.Second

func newProber(l *Loop, host, port string) *prober {
	if a := net.ParseIP(host); a != nil && a.IsUnspecified() {
		host = "" // which is dialled as this machine
	}
	l.addr = net.JoinHostPort(host, port)
	p := &prober{
		loop: l, addr: l.addr, found: make(chan sighted, 1), file: resolvConf, look: 30 * time.Second,
		window: 30 * time.Second, again: time.Second, notYet: 100 * time.Millisecond, linger: 2 * time.Second,
	}
	l.conclude = func(from sighted) { p.found <- from }
	return p
}

func (p *prober) start() error {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	p.running.Go(func() { p.run(ctx) })
	return nil
}

func (p *prober) stop() error {
	if p.cancel != nil {
		p.cancel()
		p.running.Wait()
	}
	return nil
}

// run sends the probe until it is answered, or has come back too often.
func (p *prober) run(ctx context.Context) {
	defer p.loop.off.Store(true)
	probing, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	answered := make(chan struct{})
	sending.Go(func() {
		p.probe(probing)
		close(answered)
	})
	var from sighted
	select {
	case from = <-p.found:
	case <-answered:
	}
	cancel()
	sending.Wait()
	if !from.seen {
		select {
		case from = <-p.found: // just so
		default:
			return
		}
	}
	p.act(ctx, from)
}

// probe sends the probe until it is answered, or for as long as window. An answer means that there is no loop, as one would not have
// let it come back.
func (p *prober) probe(ctx context.Context) {
	if p.before > 0 && !wait(ctx, p.before) {
		return
	}
	window, cancel := context.WithTimeout(ctx, p.window)
	defer cancel()
	for {
		err := p.send(window)
		if err == nil {
			wait(ctx, p.linger)
			return
		}
		p.loop.forget()
		pause := p.again
		if neterr.Is(err, syscall.ECONNREFUSED) {
			pause = p.notYet
		}
		if !wait(window, pause) {
			return
		}
	}
}

// act ends the process because of a loop, or breaks the loop until it is gone.
func (p *prober) act(ctx context.Context, from sighted) {
	carriers := p.trace(ctx)
	if ctx.Err() != nil {
		return // the server ends anyway
	}
	logger.Errorf("%s", p.loop.tell(carriers, p.file))
	if !p.breaks {
		p.loop.fatal("%s", p.loop.text(from))
		return
	}
	p.loop.broken.set(carriers, from.addr)
	logger.Errorf("%s. Queries from %s are refused until they do not come back any more", p.loop.text(from), p.loop.broken.text())
	for wait(ctx, p.look) {
		carriers = p.trace(ctx)
		if ctx.Err() != nil {
			return
		}
		if len(carriers) > 0 {
			p.loop.broken.set(carriers, from.addr)
		} else if p.loop.upstreams != nil {
			p.loop.broken.senders.Store(nil)
			logger.Infof("The loop for zone %q is gone, %d queries were refused", p.loop.zone, p.loop.broken.refused.Load())
			return
		}
	}
}

// trace finds the upstreams that carry a loop, if they are known at all.
func (p *prober) trace(ctx context.Context) []carrier {
	if p.loop.upstreams == nil {
		return nil
	}
	return p.loop.trace(ctx)
}

// send asks the server for the probe's name, over UDP.
func (p *prober) send(ctx context.Context) error {
	m := new(dns.Msg).SetQuestion(p.loop.qname, dns.TypeHINFO)
	_, _, err := new(dns.Client).ExchangeContext(ctx, m, p.addr)
	return err
}

// wait reports whether d has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
