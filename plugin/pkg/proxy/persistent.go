package proxy

import (
	"context"
	"net"
	"time"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs"

	"github.com/miekg/dns"
)

// persistConn is a connection of a Transport. Its methods are those of the dns.Conn.
type persistConn struct {
	*dns.Conn
	stream  bool
	created time.Time
	used    time.Time
}

func (c *persistConn) stack() int {
	if c.stream {
		return 1
	}
	return 0
}

// Dial is a connection over proto, "udp", "tcp" or "tcp-tls": the one that is idle for longest, so that ports
// change as much as they can, or else a new one. cached tells which; a cached one may turn out to be closed by the
// other side. With a TLS configuration, and for an upstream of TLS, all are of TLS.
func (t *Transport) Dial(proto string) (conn *persistConn, cached bool, err error) {
	k := viaUDP
	switch {
	case t.secured(), proto == "tcp-tls":
		k = viaTLS
	case proto == "tcp":
		k = viaTCP
	}
	t.mu.Lock()
	if t.stopped {
		t.mu.Unlock()
		return nil, false, errStopped
	}
	stack := &t.idle[(&persistConn{stream: k != viaUDP}).stack()]
	stale := t.clean(stack, time.Now())
	if len(*stack) > 0 {
		conn, *stack = (*stack)[0], (*stack)[1:]
	}
	t.mu.Unlock()
	closeAll(stale)
	if conn != nil {
		connCacheHits.WithLabelValues(t.proxyName, t.addr, k.String()).Inc()
		return conn, true, nil
	}
	connCacheMisses.WithLabelValues(t.proxyName, t.addr, k.String()).Inc()
	conn, err = t.dial(k)
	return conn, false, err
}

func (t *Transport) dial(k kind) (*persistConn, error) {
	conf := t.conf.Load()
	network := "tcp"
	if k == viaUDP {
		network = "udp"
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), t.dialTime.timeout())
	defer cancel()
	defer func() { t.dialTime.note(time.Since(began)) }()
	conn, err := hostaddrs.Dial(ctx, &net.Dialer{LocalAddr: conf.localAddr(network)}, network, t.hostPort)
	if err != nil {
		return nil, err
	}
	if k == viaTLS {
		if conn, err = secured(ctx, conn, conf.tls, t.hostPort); err != nil {
			return nil, err
		}
	}
	return &persistConn{Conn: &dns.Conn{Conn: conn}, stream: k != viaUDP, created: began}, nil
}

// Yield gives a connection back that Dial gave and that is good for another query.
func (t *Transport) Yield(pc *persistConn) {
	now := time.Now()
	pc.used = now
	conf := t.conf.Load()
	t.mu.Lock()
	stack := &t.idle[pc.stack()]
	if t.stopped || conf.maxIdle > 0 && len(*stack) >= conf.maxIdle {
		t.mu.Unlock()
		pc.Close()
		return
	}
	pc.SetDeadline(time.Time{})
	*stack = append(*stack, pc)
	if !t.cleaning {
		t.cleaning = true
		t.cleaner.Go(t.keepClean)
	}
	t.mu.Unlock()
}

// clean takes off a stack what is idle for too long or too old. t.mu is held.
func (t *Transport) clean(stack *[]*persistConn, now time.Time) (stale []*persistConn) {
	conf := t.conf.Load()
	kept := (*stack)[:0]
	for _, c := range *stack {
		if now.Sub(c.used) > conf.expire || conf.maxAge > 0 && now.Sub(c.created) > conf.maxAge {
			stale = append(stale, c)
		} else {
			kept = append(kept, c)
		}
	}
	clear((*stack)[len(kept):])
	*stack = kept
	return stale
}

// keepClean runs while there are idle connections.
func (t *Transport) keepClean() {
	for {
		select {
		case <-time.After(cleanEvery):
		case <-t.quit:
			return
		}
		t.mu.Lock()
		now := time.Now()
		stale := append(t.clean(&t.idle[0], now), t.clean(&t.idle[1], now)...)
		if len(t.idle[0])+len(t.idle[1]) == 0 {
			t.cleaning = false
		}
		again := t.cleaning
		t.mu.Unlock()
		closeAll(stale)
		if !again {
			return
		}
	}
}

func closeAll(conns []*persistConn) {
	for _, c := range conns {
		c.Close()
	}
}

// Start does nothing: what there is to do begins with the first connection that is given back.
func (t *Transport) Start() {}

// Stop closes the connections that were given back, and all that will be. Dial gives no more.
func (t *Transport) Stop() {
	t.mu.Lock()
	if !t.stopped {
		t.stopped = true
		close(t.quit)
	}
	idle := append(t.idle[0], t.idle[1]...)
	t.idle = [2][]*persistConn{}
	t.mu.Unlock()
	closeAll(idle)
	t.cleaner.Wait()
}
