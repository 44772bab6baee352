package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	pkgtls "github.com/coredns/coredns/plugin/pkg/tls"
	"github.com/coredns/coredns/plugin/pkg/upstream"

	"github.com/coredns/caddy"
	etcdcv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

func init() { plugin.Register(pluginName, setup) }

const (
	defaultPath     = "skydns"
	defaultEndpoint = "http://localhost:2379"
)

// settings is what a directive says.
type settings struct {
	etcd               *Etcd
	endpoints          []string
	username, password string
	tls                *tls.Config
	tlsFiles           []string
	watch              bool // keep a copy
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		s.etcd.Zones, err = plugin.ZonesFromArgs(l.Args, l.Controller().ServerBlockKeys)
		plugin.Zones(s.etcd.Zones).Respell()
		return err
	}},
	Options: corefile.Table[settings]{
		corefile.Fallthrough(func(s *settings, zones []string) { s.etcd.Fall.SetZonesFromArgs(zones) }),
		corefile.String("path", "PATH", "the first part of all keys (skydns)", func(s *settings, v string) { s.etcd.PathPrefix = v }),
		corefile.Strings("endpoint", "ENDPOINT...", "where etcd is (http://localhost:2379)", func(s *settings, v []string) { s.endpoints = v }),
		corefile.Row("credentials", "USERNAME PASSWORD", "who asks", 1, -1, func(s *settings, l *corefile.Line) error {
			if len(l.Args) != 2 {
				return errors.New("credentials requires 2 arguments, username and password")
			}
			s.username, s.password = l.Arg(0), l.Arg(1)
			return nil
		}),
		corefile.Row("tls", "[CA | CERT KEY | CERT KEY CA]", "files for TLS", 0, -1, setTLS),
		corefile.Row("min-lease-ttl", "DURATION", "the least TTL that a lease makes (30s)", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.etcd.MinLeaseTTL, err = leaseTTL("min-lease-ttl", l.Arg(0))
			return err
		}),
		corefile.Row("max-lease-ttl", "DURATION", "the greatest TTL that a lease makes (24h)", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.etcd.MaxLeaseTTL, err = leaseTTL("max-lease-ttl", l.Arg(0))
			return err
		}),
		corefile.Row("watch", "[on|off]", "whether a copy is kept in memory (off)", 0, 1, func(s *settings, l *corefile.Line) error {
			switch word := strings.ToLower(l.Arg(0)); word {
			case "", "on", "off":
				s.watch = word != "off"
				return nil
			}
			return l.Errf("watch '%s' is not supported: must be one of on, off", l.Arg(0))
		}),
		corefile.Flag("stubzones", "nothing any more", func(*settings) {}).Hidden(),
		corefile.Ignored[settings]("debug"),
		corefile.Ignored[settings]("upstream"),
	},
})

func setTLS(s *settings, l *corefile.Line) (err error) {
	if n := len(l.Args); n > 3 {
		return fmt.Errorf("maximum of three arguments allowed for TLS config, found %d", n)
	}
	root := dnsserver.GetConfig(l.Controller()).Root
	s.tlsFiles = corefile.AllBelow(root, l.Args)
	s.tls, err = pkgtls.NewTLSConfigFromArgs(s.tlsFiles...)
	return err
}

// leaseTTL reads seconds, as a number or as a duration.
func leaseTTL(name, text string) (uint32, error) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		d, derr := time.ParseDuration(text)
		if derr != nil {
			return 0, fmt.Errorf("invalid %s value: invalid TTL format, use format like '30', '30s', '5m', '1h', or '2h30m'", name)
		}
		seconds = int64(d / time.Second)
		if d < 0 {
			seconds = -1
		}
	}
	switch {
	case seconds < 0:
		return 0, fmt.Errorf("invalid %s value: TTL must be non-negative", name)
	case seconds > math.MaxUint32:
		return 0, fmt.Errorf("invalid %s value: TTL too large, maximum is %d seconds", name, uint32(math.MaxUint32))
	}
	return uint32(seconds), nil
}

// warnOfPlain tells of endpoints that are asked without TLS though there are files for it. The client goes by the scheme of the first
// one, which may be that of the default.
func (s *settings) warnOfPlain() {
	if first := s.endpoints[0]; s.tls != nil && strings.HasPrefix(strings.ToLower(first), "http://") {
		logger.Warningf("'tls' has no effect, etcd is asked without TLS: the first endpoint is %s, not https://", first)
	}
}

func setup(c *caddy.Controller) error {
	s := settings{
		etcd:      &Etcd{PathPrefix: defaultPath, Upstream: upstream.New(), MinLeaseTTL: defaultMinLease, MaxLeaseTTL: defaultMaxLease},
		endpoints: []string{defaultEndpoint},
	}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	s.warnOfPlain()
	e := s.etcd
	e.PathPrefix = strings.Trim(e.PathPrefix, "/")
	config := etcdcv3.Config{
		Endpoints: s.endpoints, TLS: s.tls, Username: s.username, Password: s.password, Logger: quietLogger(),
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout, DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect)},
	}
	if s.username == "" && !dnsserver.Validated(c) { // a client connects at once
		client, err := etcdcv3.New(config)
		if err != nil {
			return plugin.Error(pluginName, err)
		}
		e.Client = client
	}
	dnsserver.OnEnd(c, e.OnShutdown)
	c.OnStartup(func() error {
		if s.username != "" {
			e.letIn(config)
		}
		if s.watch {
			e.view = newView(e.admitted, msg.Path("", e.PathPrefix), defaultViewSize, e.lastRev.see)
			e.inherit()
			e.view.start()
		}
		return nil
	})
	if s.watch {
		e.kin = s.kin()
		c.OnRestart(func() error { e.offer(); return nil })
		c.OnRestartFailed(func() error { e.withdraw(); return nil })
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		e.Next = next
		return e
	})
	return nil
}

// A connection that is dead shows by this time, though nothing is asked.
const (
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// reconnect is how an etcd that is away is looked for. By gRPC's own pauses, up to two minutes, queries would go on to
// fail when it is there again. It is a variable for tests.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: time.Second / 2, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 3 * time.Second},
	MinConnectTimeout: requestTime,
}
