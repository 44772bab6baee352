package proxy

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultExpire = 10 * time.Second
	cleanEvery    = 10 * time.Second
)

// config is the settings of sockets and connections. It never changes; setters make another one.
type config struct {
	expire  time.Duration
	maxAge  time.Duration // 0 is none
	maxIdle int           // 0 is any number
	tls     *tls.Config
	local   netip.Addr
}

// idled reports whether what was used last at a time, in nanoseconds, is idle for too long.
func (c *config) idled(used, now int64) bool { return now-used > int64(c.expire) }

// aged reports whether what was opened at a time is too old.
func (c *config) aged(opened, now int64) bool { return c.maxAge > 0 && now-opened > int64(c.maxAge) }

// reapEvery is how often, in nanoseconds, idle sockets are looked for.
func (c *config) reapEvery() int64 {
	d := c.expire
	if c.maxAge > 0 {
		d = min(d, c.maxAge)
	}
	return int64(min(max(d/4, 50*time.Millisecond), 2500*time.Millisecond))
}

// Transport keeps connections to one upstream for programs that write and read by themselves; a Proxy's own queries do
// not pass it. A connection is one caller's between Dial and Yield.
type Transport struct {
	proxyName, addr string
	hostPort        string // of addr
	secured         func() bool
	conf            atomic.Pointer[config]
	dialTime        *dialTime
	cleaner         sync.WaitGroup
	quit            chan struct{}

	mu       sync.Mutex
	idle     [2][]*persistConn // UDP sockets and connections, the longest idle first
	cleaning bool
	stopped  bool
}

func newTransport(p *Proxy) *Transport {
	t := &Transport{proxyName: p.name, addr: p.addr, hostPort: p.hostPort, secured: p.secured, dialTime: newDialTime(), quit: make(chan struct{})}
	t.conf.Store(&config{expire: defaultExpire})
	return t
}

func (t *Transport) set(change func(*config)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := *t.conf.Load()
	change(&c)
	t.conf.Store(&c)
}

// SetExpire sets how long a connection may be idle.
func (t *Transport) SetExpire(expire time.Duration) { t.set(func(c *config) { c.expire = expire }) }

// SetMaxAge sets how old a connection may become; 0 means any age.
func (t *Transport) SetMaxAge(maxAge time.Duration) { t.set(func(c *config) { c.maxAge = maxAge }) }

// SetMaxIdleConns sets how many sockets, and how many connections, may be idle; 0 means any number.
func (t *Transport) SetMaxIdleConns(n int) { t.set(func(c *config) { c.maxIdle = n }) }

// SetTLSConfig makes connections be of TLS.
func (t *Transport) SetTLSConfig(cfg *tls.Config) { t.set(func(c *config) { c.tls = cfg }) }

// GetTLSConfig is what SetTLSConfig set, nil if nothing.
func (t *Transport) GetTLSConfig() *tls.Config { return t.conf.Load().tls }

// SetLocalAddress sets the address to dial from.
func (t *Transport) SetLocalAddress(addr net.IP) {
	t.set(func(c *config) { c.local = addrOf(addr) })
}
