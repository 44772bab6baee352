package loop

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// prober sends the probe of one Loop, on a goroutine that ends when the Loop need not look any more.
type prober struct {
	loop    *Loop
	addr    string
	cancel  context.CancelFunc
	running sync.WaitGroup

	window time.Duration // the probe must be answered in it
	again  time.Duration // between a failure and the next try
	notYet time.Duration // the same, as long as nobody listens
	linger time.Duration // how long to look after the answer
}

func newProber(l *Loop, host, port string) *prober {
	if a := net.ParseIP(host); a != nil && a.IsUnspecified() {
		host = "" // which is dialled as this machine
	}
	l.addr = net.JoinHostPort(host, port)
	return &prober{
		loop: l, addr: l.addr,
		window: 30 * time.Second, again: time.Second, notYet: 100 * time.Millisecond, linger: 2 * time.Second,
	}
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

// run sends the probe until it is answered. Then there is no loop, as one would not have let it come back.
func (p *prober) run(ctx context.Context) {
	defer p.loop.off.Store(true)
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
		if errors.Is(err, syscall.ECONNREFUSED) {
			pause = p.notYet
		}
		if !wait(window, pause) {
			return
		}
	}
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
