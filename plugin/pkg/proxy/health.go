package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// HealthChecker asks an upstream whether it is well. Its Set methods belong before the first Check.
type HealthChecker interface {
	// Check asks p once. Any reply with a header, whatever it says, makes p well; an error is counted against it.
	Check(*Proxy) error
	SetTLSConfig(*tls.Config)
	GetTLSConfig() *tls.Config
	// SetRecursionDesired sets the RD bit of the query, and SetDomain its name.
	SetRecursionDesired(bool)
	GetRecursionDesired() bool
	SetDomain(domain string)
	GetDomain() string
	// SetTCPTransport lets an upstream of plain DNS be asked over TCP.
	SetTCPTransport()
	GetReadTimeout() time.Duration
	SetReadTimeout(time.Duration)
	GetWriteTimeout() time.Duration
	SetWriteTimeout(time.Duration)
	SetLocalAddress(net.IP)
	GetLocalAddress() net.IP
}

const checkTimeout = time.Second

// NewHealthChecker is the checker for upstreams of a protocol. For an unknown one it logs a warning and is nil.
func NewHealthChecker(proxyName, protocol string, recursionDesired bool, domain string) HealthChecker {
	switch protocol {
	case transport.DNS, transport.TLS, transport.HTTPS, transport.HTTPS3, transport.QUIC:
		return &checker{
			protocol: protocol, recursion: recursionDesired, domain: domain,
			readTimeout: checkTimeout, writeTimeout: checkTimeout,
		}
	}
	log.Warningf("No healthchecker for transport %q", protocol)
	return nil
}

// checker asks for the NS records of a name, on a connection of its own for each check.
type checker struct {
	protocol                  string
	tls                       *tls.Config
	recursion                 bool
	domain                    string
	tcp                       bool
	readTimeout, writeTimeout time.Duration
	local                     net.IP
}

func (c *checker) SetTLSConfig(cfg *tls.Config)    { c.tls = cfg }
func (c *checker) GetTLSConfig() *tls.Config       { return c.tls }
func (c *checker) SetRecursionDesired(on bool)     { c.recursion = on }
func (c *checker) GetRecursionDesired() bool       { return c.recursion }
func (c *checker) SetDomain(domain string)         { c.domain = domain }
func (c *checker) GetDomain() string               { return c.domain }
func (c *checker) SetTCPTransport()                { c.tcp = true }
func (c *checker) GetReadTimeout() time.Duration   { return c.readTimeout }
func (c *checker) SetReadTimeout(t time.Duration)  { c.readTimeout = t }
func (c *checker) GetWriteTimeout() time.Duration  { return c.writeTimeout }
func (c *checker) SetWriteTimeout(t time.Duration) { c.writeTimeout = t }
func (c *checker) SetLocalAddress(ip net.IP)       { c.local = ip }
func (c *checker) GetLocalAddress() net.IP         { return c.local }

// Check asks p once.
func (c *checker) Check(p *Proxy) error { return c.check(context.Background(), p) }

// check is Check until ctx ends.
func (c *checker) check(ctx context.Context, p *Proxy) error {
	err := c.ask(ctx, p)
	switch {
	case err == nil:
		p.fails.Store(0)
	case ctx.Err() == nil:
		healthcheckFailures.WithLabelValues(p.name, p.addr).Inc()
		p.fails.Add(1)
	}
	return err
}

func (c *checker) ask(ctx context.Context, p *Proxy) error {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(c.domain), dns.TypeNS)
	m.RecursionDesired = c.recursion
	query, err := m.Pack()
	if err != nil {
		return fmt.Errorf("health check of %s for %s: %w", p.addr, c.domain, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.readTimeout+c.writeTimeout)
	defer cancel()
	switch c.protocol {
	case transport.HTTPS, transport.HTTPS3, transport.QUIC:
		return c.askCarried(ctx, p, query)
	}
	network := "udp"
	if c.tcp || c.tls != nil || c.protocol == transport.TLS {
		network = "tcp"
	}
	dialCtx, cancelDial := context.WithTimeout(ctx, c.writeTimeout)
	defer cancelDial()
	conn, err := c.dial(dialCtx, network, p.hostPort)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(past) })()
	if network == "tcp" {
		return c.askStream(conn, query)
	}
	return c.askUDP(conn, query)
}

func (c *checker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conf := config{local: addrOf(c.local)}
	conn, err := hostaddrs.Dial(ctx, &net.Dialer{LocalAddr: conf.localAddr(network)}, network, addr)
	if err != nil || c.tls == nil && c.protocol != transport.TLS {
		return conn, err
	}
	return secured(ctx, conn, c.tls, addr)
}

func (c *checker) askUDP(conn net.Conn, query []byte) error {
	if _, err := conn.Write(query); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(c.readTimeout))
	buf := make([]byte, wire.MaxMessage)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		if headsReply(buf[:n], query) {
			return nil
		}
	}
}

func (c *checker) askStream(conn net.Conn, query []byte) error {
	conn.SetWriteDeadline(time.Now().Add(c.writeTimeout))
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(c.readTimeout))
	var head [2 + wire.HeaderLen]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if !headsReply(head[2:], query) {
		return ErrMismatch
	}
	return nil
}

// askCarried asks over the connections that the upstream's queries use.
func (c *checker) askCarried(ctx context.Context, p *Proxy, query []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.readTimeout)
	defer cancel()
	query[0], query[1] = 0, 0
	x := Exchange{Query: query, Timeout: c.readTimeout, check: true}
	if p.protocol == transport.HTTPS && !p.byLibrary() {
		k := &call{x: x, done: make(chan struct{}, 1)}
		k.x.Owner = k
		p.Begin(&k.x)
		if k.wait(ctx, p); k.x.Err != nil {
			return k.x.Err
		}
		x.Reply = k.reply
	} else {
		var buf bytes.Buffer
		b, err := p.carry(ctx, &x, &buf, func(net.Addr) {})
		if err != nil {
			return err
		}
		x.Reply = b
	}
	if !headsReply(x.Reply, query) {
		return ErrMismatch
	}
	return nil
}

// headsReply reports whether b begins with the header of a reply to query.
func headsReply(b, query []byte) bool {
	return len(b) >= wire.HeaderLen && b[0] == query[0] && b[1] == query[1] && b[2]&(wire.FlagQR>>8) != 0
}

// Down reports whether more than maxfails health checks failed since the upstream was heard of; with 0 it is never
// down.
func (p *Proxy) Down(maxfails uint32) bool { return maxfails > 0 && p.fails.Load() > maxfails }

// Fails is how many health checks failed since the upstream was heard of.
func (p *Proxy) Fails() uint32 { return p.fails.Load() }

// Healthcheck makes the prober ask until the upstream is heard of. It returns at once.
func (p *Proxy) Healthcheck() {
	if p.health == nil {
		log.Warning("No healthchecker")
		return
	}
	p.prober.begin()
}

// succeeded notes a reply, which took so long since Begin.
func (p *Proxy) succeeded(x *Exchange, took time.Duration) {
	if x.check {
		return
	}
	if p.fails.Load() != 0 {
		p.fails.Store(0)
	}
	p.counts.observe(x.Facts.Rcode, took.Seconds())
	if p.latency != nil && x.RTT < x.Timeout {
		p.latency.Note(x.RTT)
		p.counts.observeTrip(x.RTT.Seconds())
	}
}

// addrOf is ip as a netip.Addr, not valid for none.
func addrOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
