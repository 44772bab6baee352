package route53

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/fall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/smithy-go/logging"
	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	keys        map[string][]string // ids of hosted zones by name
	key, secret string
	endpoint    string
	profile     string
	files       []string // with profiles
	refresh     time.Duration
	fall        fall.F
}

const defaultRefresh = time.Minute

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Unknown: "unknown property %q",
	Args: corefile.Args[settings]{Syntax: "[ZONE:HOSTED_ZONE_ID...]", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		s.keys = map[string][]string{}
		for _, arg := range l.Args {
			zone, id, ok := strings.Cut(arg, ":")
			if !ok || id == "" || !mirror.IsZone(zone) {
				return fmt.Errorf("invalid zone %q", arg)
			}
			zone = plugin.Name(zone).Normalize()
			if slices.Contains(s.keys[zone], id) {
				return fmt.Errorf("conflict zone %q", arg)
			}
			s.keys[zone] = append(s.keys[zone], id)
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Row("aws_access_key", "KEY_ID SECRET", "who asks", 0, -1, func(s *settings, l *corefile.Line) error {
			if len(l.Args) != 2 {
				return fmt.Errorf("invalid access key: '%v'", l.Args)
			}
			logger.Warning("Save aws_access_key in the environment or in a credentials file: it is readable in the Corefile")
			s.key, s.secret = l.Arg(0), l.Arg(1)
			return nil
		}),
		corefile.String("aws_endpoint", "ENDPOINT", "where the API is", func(s *settings, v string) { s.endpoint = v }),
		corefile.Row("credentials", "PROFILE [FILENAME]", "a profile of AWS's shared configuration", 1, 2, func(s *settings, l *corefile.Line) error {
			if s.profile = l.Arg(0); len(l.Args) < 2 {
				return nil
			}
			s.files = []string{l.Arg(1)}
			if on, err := strconv.ParseBool(os.Getenv("AWS_SDK_LOAD_CONFIG")); err == nil && on {
				s.files = append(s.files, config.DefaultSharedConfigFilename())
			}
			return nil
		}),
		corefile.Fallthrough(func(s *settings, zones []string) { s.fall.SetZonesFromArgs(zones) }),
		corefile.Row("refresh", "DURATION", "how often zones are read (1m)", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			text := l.Arg(0)
			if _, err := strconv.Atoi(text); err == nil {
				text += "s"
			}
			if s.refresh, err = time.ParseDuration(text); err != nil {
				//lint:ignore ST1005 as CoreDNS 1.14.7 words it
				return fmt.Errorf("Unable to parse duration: %w", err)
			}
			if s.refresh <= 0 {
				return fmt.Errorf("refresh interval must be greater than 0: %q", l.Arg(0))
			}
			return nil
		}),
		corefile.Ignored[settings]("upstream"),
	},
})

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{refresh: defaultRefresh})
	if err != nil {
		return err
	}
	for i := range all {
		if err := all[i].install(c); err != nil {
			return plugin.Error(pluginName, err)
		}
	}
	return nil
}

// install reads the zones of one directive and puts it into the chain.
func (s *settings) install(c *caddy.Controller) error {
	if dnsserver.Validated(c) {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &Route53{Next: next} })
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	dnsserver.OnEnding(c, cancel)
	client, err := s.client(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("failed to create route53 client: %w", err)
	}
	h, err := New(ctx, client, s.keys, s.refresh)
	if err != nil {
		cancel()
		return fmt.Errorf("failed to create route53 plugin: %w", err)
	}
	h.Fall = s.fall
	if err := h.Run(ctx); err != nil {
		cancel()
		return fmt.Errorf("failed to initialize route53 plugin: %w", err)
	}
	h.Install(c, func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	}, cancel)
	return nil
}

// logLine makes a line of the SDK's log, which else goes to standard error in a form of its own, one of the server's.
func logLine(class logging.Classification, format string, v ...any) {
	if class == logging.Warn {
		logger.Warningf(format, v...)
		return
	}
	logger.Debugf(format, v...)
}

// regionTime is how long the instance's own service is asked for the region.
const regionTime = 5 * time.Second

// answerTime is how long an answer may take to begin. One that does not comes over a connection that may be dead, and
// is asked for again over another one. It is a variable for tests.
var answerTime = 20 * time.Second

// patience bounds how long a connection that is dead is waited for, which with HTTP/2 all requests share.
func patience(t *http.Transport) {
	t.ResponseHeaderTimeout = answerTime
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: answerTime, PingTimeout: answerTime}
}

// client is who asks Route 53, as the directive and AWS's own configuration have it.
func (s *settings) client(ctx context.Context) (api, error) {
	opts := []func(*config.LoadOptions) error{
		config.WithLogger(logging.LoggerFunc(logLine)), config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(patience)),
	}
	if s.key != "" {
		opts = append(opts, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(s.key, s.secret, "")))
	}
	if s.profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(s.profile))
	}
	if len(s.files) > 0 {
		opts = append(opts, config.WithSharedConfigFiles(s.files), config.WithSharedCredentialsFiles(s.files))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		ctx, cancel := context.WithTimeout(ctx, regionTime)
		defer cancel()
		out, err := imds.NewFromConfig(cfg).GetRegion(ctx, new(imds.GetRegionInput))
		if err != nil {
			return nil, fmt.Errorf("failed to get region from IMDS: %w", err)
		}
		cfg.Region = out.Region
	}
	if cfg.Region == "" {
		return nil, errors.New("no region")
	}
	client := route53.NewFromConfig(cfg, func(o *route53.Options) {
		if s.endpoint != "" {
			o.BaseEndpoint = aws.String(s.endpoint)
		}
	})
	return calls{client.ListHostedZonesByName, client.ListResourceRecordSets}, nil
}
