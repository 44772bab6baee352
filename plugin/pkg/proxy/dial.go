package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
)

// dialTime is how long dialling takes, as a running average; new values weigh a quarter.
type dialTime struct{ average atomic.Int64 }

const (
	minDialTimeout = time.Second
	maxDialTimeout = 30 * time.Second
)

func newDialTime() *dialTime {
	d := new(dialTime)
	d.average.Store(int64(maxDialTimeout))
	return d
}

// timeout is how long to wait for the next connection: twice the average, within bounds.
func (d *dialTime) timeout() time.Duration {
	return min(max(2*time.Duration(d.average.Load()), minDialTimeout), maxDialTimeout)
}

// note takes account of a dialling that took so long, whether it succeeded or not.
func (d *dialTime) note(took time.Duration) {
	for {
		old := d.average.Load()
		if d.average.CompareAndSwap(old, old+(int64(took)-old)/4) {
			return
		}
	}
}

// dialPeer is how long a connection to a Peer may take until it is there.
const dialPeer = 3 * time.Second

// dial opens the connection.
func (c *streamConn) dial() (net.Conn, error) {
	if c.to == nil {
		return c.engine.proxy.dialStream(c.ctx)
	}
	dialer := new(net.Dialer)
	if c.from.IsValid() {
		dialer.LocalAddr = &net.TCPAddr{IP: c.from.AsSlice(), Zone: c.from.Zone()}
	}
	ctx, cancel := context.WithTimeout(c.ctx, dialPeer)
	defer cancel()
	conn, err := hostaddrs.Dial(ctx, dialer, "tcp", c.to.addr.String())
	conn = nonblock.Conn(conn)
	p := c.engine.proxy
	if err != nil || p.streamKind() == viaTCP {
		return conn, err
	}
	return secured(ctx, conn, p.transport.conf.Load().tls, c.to.addr.String())
}

// dialStream opens a TCP or TLS connection.
func (p *Proxy) dialStream(ctx context.Context) (net.Conn, error) {
	return p.dialTimed(ctx, p.streamKind() == viaTLS)
}

// dialTimed opens a connection, over TLS if that is to be, for one of the protocols (ALPN). How long that takes decides
// how long the next one may.
func (p *Proxy) dialTimed(ctx context.Context, overTLS bool, protocols ...string) (net.Conn, error) {
	conf := p.transport.conf.Load()
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.transport.dialTime.timeout())
	defer cancel()
	defer func() { p.transport.dialTime.note(time.Since(began)) }()

	conn, err := hostaddrs.Dial(ctx, &net.Dialer{LocalAddr: conf.localAddr("tcp")}, "tcp", p.hostPort)
	conn = nonblock.Conn(conn)
	if err != nil || !overTLS {
		return conn, err
	}
	cfg := conf.tls
	if len(protocols) > 0 {
		cfg = namedTLS(cfg, p.hostPort).Clone()
		cfg.NextProtos = protocols
	}
	return secured(ctx, conn, cfg, p.hostPort)
}

// secured is conn with TLS to addr. Until the first reply it acknowledges what comes at once: servers that tell how to
// resume a session may hold the reply back until they know that this has come.
func secured(ctx context.Context, conn net.Conn, cfg *tls.Config, addr string) (net.Conn, error) {
	conn = nonblock.Conn(conn)
	nonblock.QuickAck(conn, true)
	secure := tls.Client(&heldConn{Conn: conn}, namedTLS(cfg, addr))
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// namedTLS is cfg with a name to verify, which is the address if there is none.
func namedTLS(cfg *tls.Config, addr string) *tls.Config {
	if cfg == nil {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.ServerName != "" || cfg.InsecureSkipVerify {
		return cfg
	}
	cfg = cfg.Clone()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.WithZone("").String()
	}
	cfg.ServerName = host
	return cfg
}

// streamKind is how this upstream is asked over connections.
func (p *Proxy) streamKind() kind {
	if p.secured() {
		return viaTLS
	}
	return viaTCP
}

// localAddr is the address to dial from, nil for any.
func (c *config) localAddr(network string) net.Addr {
	if !c.local.IsValid() {
		return nil
	}
	if network == "udp" {
		return &net.UDPAddr{IP: c.local.AsSlice(), Zone: c.local.Zone()}
	}
	return &net.TCPAddr{IP: c.local.AsSlice(), Zone: c.local.Zone()}
}

// netAddr is the upstream's address for the text of errors.
func (p *Proxy) netAddr() net.Addr { return textAddr(p.hostPort) }

type textAddr string

func (textAddr) Network() string  { return "tcp" }
func (a textAddr) String() string { return string(a) }
