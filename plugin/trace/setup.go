package trace

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	kind, endpoint string
	every          uint64
	service        string
	host, port     string // where the block listens
	clientServer   bool
	analytics      float64
	backlog, batch int
	interval       time.Duration
}

// kinds are the collectors there are, with where they are by default.
var kinds = map[string]string{"zipkin": "localhost:9411", "datadog": "localhost:8126", "otlp": "localhost:4317"}

func defaults() settings {
	return settings{kind: "zipkin", every: 1, service: "coredns", backlog: defaultBacklog, batch: defaultBatch, interval: defaultInterval}
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[zipkin|datadog|otlp] [ENDPOINT]", Max: 2, Set: func(s *settings, l *corefile.Line) error {
		switch len(l.Args) {
		case 1:
			if _, ok := kinds[l.Arg(0)]; ok && l.Arg(0) == "otlp" {
				s.kind = "otlp" // a kind of ours; the others need an endpoint behind them
			} else {
				s.endpoint = l.Arg(0)
			}
		case 2:
			s.kind, s.endpoint = strings.ToLower(l.Arg(0)), l.Arg(1)
		}
		if _, ok := kinds[s.kind]; !ok {
			return fmt.Errorf("tracing endpoint type '%s' is not supported (zipkin, datadog or otlp)", s.kind)
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Row("every", "N", "of so many queries one is followed; 0 is none", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.every, err = strconv.ParseUint(l.Arg(0), 10, 64)
			return err
		}),
		corefile.String("service", "NAME", "the server's name at the collector", func(s *settings, v string) { s.service = v }),
		corefile.Row("client_server", "[BOOL]", "whether both sides of a call share a span", 0, 1, func(s *settings, l *corefile.Line) (err error) {
			if s.clientServer = true; len(l.Args) > 0 {
				s.clientServer, err = strconv.ParseBool(l.Arg(0))
			}
			return err
		}),
		corefile.Row("datadog_analytics_rate", "RATE", "the part of traces that is kept for search", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.analytics, err = strconv.ParseFloat(l.Arg(0), 64)
			if err == nil && !(s.analytics >= 0 && s.analytics <= 1) {
				err = fmt.Errorf("datadog analytics rate must be between 0 and 1, '%f' is not supported", s.analytics)
			}
			return err
		}),
		number("zipkin_max_backlog_size", "how many spans may wait", func(s *settings) *int { return &s.backlog }),
		number("zipkin_max_batch_size", "how many spans are sent at once at most", func(s *settings) *int { return &s.batch }),
		corefile.Row("zipkin_max_batch_interval", "DURATION", "how long a span waits for others", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.interval, err = time.ParseDuration(l.Arg(0))
			if err == nil && s.interval <= 0 {
				err = fmt.Errorf("zipkin_max_batch_interval must be positive: %s", s.interval)
			}
			return err
		}),
	},
})

// number is an option with a number that is at least 1.
func number(name, help string, of func(*settings) *int) corefile.Option[settings] {
	return corefile.Row(name, "N", help, 1, 1, func(s *settings, l *corefile.Line) error {
		n, err := strconv.Atoi(l.Arg(0))
		if err == nil && n < 1 {
			err = fmt.Errorf("%s must be at least 1: %d", name, n)
		}
		*of(s) = n
		return err
	})
}

func setup(c *caddy.Controller) error {
	s := defaults()
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	config := dnsserver.GetConfig(c)
	s.host, s.port = config.ListenHosts[0], config.Port
	to, err := s.exporter()
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	dnsserver.OnEnd(c, to.close)
	send := newSender(to, s.backlog, s.batch, s.interval)
	c.OnStartup(func() error {
		send.start()
		dnsserver.OnEnding(c, send.end) // many server blocks may have one silent collector
		c.OnShutdown(send.stop)
		return nil
	})
	t := &trace{tracer: &tracer{sender: send, shared: s.clientServer && s.kind == "zipkin"}, every: s.every, tags: slashTags}
	if s.kind == "datadog" {
		t.tags = atTags
	}
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		t.Next = next
		return t
	})
	return nil
}

// exporter is what sends spans to the collector. It connects when there are some.
func (s *settings) exporter() (exporter, error) {
	endpoint := s.endpoint
	if endpoint == "" {
		endpoint = kinds[s.kind]
	}
	isURL := strings.Contains(endpoint, "http")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// A connection of HTTP/2 that leads nowhere any more, of which nobody is told, would be used on and on.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: sendTime / 2, PingTimeout: sendTime / 2}
	client := &http.Client{Transport: transport}
	switch s.kind {
	case "zipkin":
		if !isURL {
			if a, err := netip.ParseAddr(endpoint); err == nil && a.Is6() {
				endpoint = "[" + endpoint + "]"
			}
			endpoint = "http://" + endpoint + "/api/v2/spans"
		}
		return &zipkin{url: endpoint, local: endpointOf(s.service, s.host, s.port), client: client}, nil
	case "datadog":
		if !isURL {
			if _, _, err := net.SplitHostPort(endpoint); err != nil {
				endpoint = net.JoinHostPort(strings.Trim(endpoint, "[]"), "8126")
			}
			endpoint = "http://" + endpoint
		}
		return &datadog{url: strings.TrimSuffix(endpoint, "/") + "/v0.4/traces", service: s.service, rate: s.analytics, client: client}, nil
	}
	if strings.HasPrefix(endpoint, "http://") || strings.HasPrefix(endpoint, "https://") {
		if strings.Count(strings.TrimSuffix(endpoint, "/"), "/") == 2 { // without a path
			endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/traces"
		}
		return &otlpHTTP{url: endpoint, service: s.service, client: client}, nil
	}
	security := insecure.NewCredentials()
	if rest, ok := strings.CutPrefix(endpoint, "grpcs://"); ok {
		endpoint, security = rest, credentials.NewTLS(nil)
	}
	// Likewise. The library takes no shorter time, and asks only while a call is open.
	alive := keepalive.ClientParameters{Time: 10 * time.Second, Timeout: sendTime}
	conn, err := grpc.NewClient(strings.TrimPrefix(endpoint, "grpc://"), grpc.WithTransportCredentials(security), grpc.WithKeepaliveParams(alive))
	if err != nil {
		return nil, fmt.Errorf("collector %s: %w", s.endpoint, err)
	}
	return &otlpGRPC{service: s.service, conn: conn}, nil
}
