package forward

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/within"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

const (
	defaultExpire        = 10 * time.Second
	defaultReadTimeout   = 2 * time.Second
	defaultProbeInterval = 500 * time.Millisecond
)

// settings is what one directive configures.
type settings struct {
	zones         within.Zones
	targets       []target
	options       Options
	rules         rules
	policy        string
	maxFails      uint32
	maxAttempts   *uint32
	maxConcurrent int
	ede           bool
	updates       bool
	probeInterval time.Duration
	resolvers     serverResolver

	expire        time.Duration
	maxAge        time.Duration
	maxIdleConns  int
	readTimeout   time.Duration
	dohMethod     string
	randomCase    bool
	tls           *tls.Config
	tlsServerName string
	source        net.IP
	secured       map[string]*tls.Config // by target.serverName
}

func defaults() settings {
	return settings{
		options:       Options{HCRecursionDesired: true, HCDomain: "."},
		policy:        "random",
		maxFails:      2,
		probeInterval: defaultProbeInterval,
		expire:        defaultExpire,
		readTimeout:   defaultReadTimeout,
		dohMethod:     http.MethodPost,
	}
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "FROM TO...", Min: 2, Max: -1, Set: setArgs},
	Options: corefile.Table[settings]{
		corefile.Row("except", "NAMES...", "names below FROM that are not forwarded", 1, -1, setExcept),
		corefile.Flag("forward_updates", "pass UPDATE messages on, as they are, to the upstreams without TLS", func(s *settings) { s.updates = true }),
		corefile.Flag("force_tcp", "ask over TCP, also for clients that came over UDP", func(s *settings) { s.options.ForceTCP = true }),
		corefile.Flag("prefer_udp", "ask over UDP, also for clients that came over TCP, and over TCP if the reply is truncated", func(s *settings) { s.options.PreferUDP = true }),
		duration("expire", "close sockets and connections that are idle for so long", func(s *settings) *time.Duration { return &s.expire }),
		duration("max_age", "close sockets and connections that are so old; 0 is any age", func(s *settings) *time.Duration { return &s.maxAge }),
		count("max_idle_conns", "how many idle sockets, and idle connections, each upstream keeps; 0 is any number", func(s *settings) *int { return &s.maxIdleConns }),
		corefile.Row("read_timeout", "DURATION", "how long to wait for a reply", 1, 1, setReadTimeout),
		corefile.Row("max_fails", "N", "health checks that must fail until an upstream is down; 0 is never", 1, 1, setMaxFails),
		corefile.Row("max_connect_attempts", "N", "attempts of a query that may fail; 0 is any number", 1, 1, setMaxAttempts),
		corefile.Flag("case_randomization", "ask over UDP with letters of random case, which replies must repeat", func(s *settings) { s.randomCase = true }),
		corefile.Row("doh_method", "GET|POST", "method of requests over HTTPS", 1, 1, setDOHMethod),
		corefile.Row("tls", "[CA | CERT KEY | CERT KEY CA]", "files for TLS", 0, 3, setTLS),
		corefile.String("tls_servername", "NAME", "the name that certificates must be for", func(s *settings, name string) { s.tlsServerName = name }),
		corefile.Row("policy", "random|round_robin|sequential|fastest", "the order in which upstreams are tried", 1, 1, setPolicy),
		corefile.Flag("hedge", "ask a second upstream if the first one takes longer than 95 % of its replies", func(s *settings) { s.rules.hedge = true }),
		corefile.Row("health_check", "DURATION [no_rec] [domain FQDN]", "how often a failed upstream is asked for FQDN, and whether without RD", 1, -1, setHealthCheck),
		count("max_concurrent", "queries at a time; more are refused, 0 is any number", func(s *settings) *int { return &s.maxConcurrent }),
		corefile.Flag("ede", "tell clients why a query failed", func(s *settings) { s.ede = true }),
		corefile.Row("next", "RCODE...", "hand queries with such replies on to the next forward", 1, -1, setNext),
		corefile.Flag("next_on_nodata", "hand queries whose names have no such data on to the next forward", func(s *settings) { s.rules.nextOnNoData = true }),
		corefile.Flag("failfast_all_unhealthy_upstreams", "when all upstreams are down, fail instead of trying any", func(s *settings) { s.rules.failfast = true }),
		corefile.Row("failover", "RCODE...", "try the next upstream after such replies", 1, -1, setFailover),
		corefile.Row("source_address", "IP", "the address to ask from", 1, 1, setSource),
		corefile.Row("resolver", "IP[:PORT]...", "who tells the addresses of upstreams that are names", 1, -1, setResolver),
	},
	Check: func(s *settings) error {
		if s.maxAge > 0 && s.maxAge < s.expire {
			return fmt.Errorf("max_age (%s) must not be less than expire (%s)", s.maxAge, s.expire)
		}
		if u := s.forwarder(); u != nil && len(u.Servers) == 0 {
			return errors.New("forward_updates goes to upstreams without TLS that are known by address, and there is none")
		}
		s.rules.forceTCP, s.rules.preferUDP = s.options.ForceTCP, s.options.PreferUDP
		s.rules.hedge = s.rules.hedge || s.policy == "fastest"
		return s.secure()
	},
})

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, defaults())
	if err != nil {
		return err
	}
	for i := range all {
		f := all[i].forward()
		if f.updates != nil {
			dnsserver.GetConfig(c).AllowOpcode(dns.OpcodeUpdate)
		}
		c.OnStartup(func() error {
			config := dnsserver.GetConfig(c)
			f.findTaps(config)
			f.details = plugin.TellsDetails(config.Handler("errors"))
			return nil
		})
		c.OnStartup(func() error {
			if err := f.OnStartup(); err != nil {
				return err
			}
			c.OnShutdown(f.OnShutdown)
			return nil
		})
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			f.Next = next
			return f
		})
	}
	return nil
}

// forwarder passes UPDATE messages on to the upstreams that are asked in the clear, nil if that is not asked for.
func (s *settings) forwarder() *updates.Forwarder {
	if !s.updates {
		return nil
	}
	u := new(updates.Forwarder)
	for _, t := range s.targets {
		if t.protocol == transport.DNS && !t.named {
			u.Servers = append(u.Servers, t.address())
		}
	}
	return u
}

// forward is the Forward that s configures, with those upstreams that are known by address.
func (s *settings) forward() *Forward {
	f := New()
	f.zones, f.policy, f.rules = s.zones, policy.Named(s.policy), s.rules
	f.measuring, _ = f.policy.(policy.Measuring)
	f.maxFails, f.maxAttempts, f.probeInterval = s.maxFails, s.maxAttempts, s.probeInterval
	f.maxConcurrent, f.ede = int64(s.maxConcurrent), s.ede
	f.ErrLimitExceeded = fmt.Errorf("concurrent queries exceeded maximum %d", s.maxConcurrent)
	for _, t := range s.targets {
		src := &source{target: t}
		if !t.named {
			src.proxies = append(src.proxies, s.newProxy(t))
		} else if f.names == nil {
			f.names = &names{settings: s, resolver: systemResolver{}, every: minRefresh}
			if len(s.resolvers) > 0 {
				f.names.resolver = s.resolvers
			}
		}
		f.sources = append(f.sources, src)
	}
	f.updates = s.forwarder()
	f.publish()
	return f
}
