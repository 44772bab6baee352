package clouddns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/upstream"

	"github.com/coredns/caddy"
	gcp "google.golang.org/api/dns/v1"
	"google.golang.org/api/option"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	keys        map[string][]string // PROJECT:MANAGED_ZONE by name
	credentials string              // a file
	endpoint    string
	anonymous   bool
	fall        fall.F
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Unknown: "unknown property %q",
	Args: corefile.Args[settings]{Syntax: "[ZONE:PROJECT_ID:HOSTED_ZONE_NAME...]", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		s.keys = map[string][]string{}
		for _, arg := range l.Args {
			parts := strings.SplitN(arg, ":", 3)
			if len(parts) != 3 || slices.Contains(parts, "") || !mirror.IsZone(parts[0]) {
				return fmt.Errorf("invalid zone %q", arg)
			}
			zone, id := plugin.Name(parts[0]).Normalize(), parts[1]+":"+parts[2]
			if slices.Contains(s.keys[zone], id) {
				return fmt.Errorf("conflict zone %q", arg)
			}
			s.keys[zone] = append(s.keys[zone], id)
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Row("credentials", "FILENAME|none", "a file with the credentials", 1, 1, func(s *settings, l *corefile.Line) error {
			if s.anonymous = l.Arg(0) == "none"; s.anonymous {
				return nil
			}
			s.credentials = l.Arg(0)
			if err := checkCredentials(s.credentials); err != nil {
				return fmt.Errorf("invalid credentials file %q: %w", s.credentials, err)
			}
			return nil
		}),
		corefile.String("endpoint", "URL", "where the API is", func(s *settings, v string) { s.endpoint = v }),
		corefile.Fallthrough(func(s *settings, zones []string) { s.fall.SetZonesFromArgs(zones) }),
		corefile.Ignored[settings]("upstream"),
	},
})

// kinds are those of credentials that may be in a file.
var kinds = map[string]option.CredentialsType{
	"service_account": option.ServiceAccount, "authorized_user": option.AuthorizedUser,
	"impersonated_service_account": option.ImpersonatedServiceAccount, "external_account": option.ExternalAccount,
}

func checkCredentials(file string) error {
	_, err := kindOf(file)
	return err
}

// kindOf is the kind of the credentials in a file.
func kindOf(file string) (option.CredentialsType, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return "", err
	}
	if head.Type == "" {
		return "", errors.New("missing `type` field in credential")
	}
	kind, ok := kinds[head.Type]
	if !ok {
		return "", fmt.Errorf("unknown credential type: %s", head.Type)
	}
	return kind, nil
}

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{})
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
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &CloudDNS{Next: next} })
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	dnsserver.OnEnding(c, cancel)
	client, err := s.client(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("failed to create client: %w", err)
	}
	h, err := New(ctx, client, s.keys, upstream.New())
	if err != nil {
		cancel()
		return fmt.Errorf("failed to create plugin: %w", err)
	}
	h.Fall = s.fall
	if err := h.Run(ctx); err != nil {
		cancel()
		return fmt.Errorf("failed to initialize plugin: %w", err)
	}
	h.Install(c, func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	}, cancel)
	return nil
}

// client is who asks Cloud DNS, as the directive and Google's own configuration have it.
func (s *settings) client(ctx context.Context) (api, error) {
	var opts []option.ClientOption
	if s.credentials != "" {
		kind, err := kindOf(s.credentials)
		if err != nil {
			return nil, err
		}
		opts = append(opts, option.WithAuthCredentialsFile(kind, s.credentials))
	}
	if s.anonymous {
		opts = append(opts, option.WithoutAuthentication())
	}
	if s.endpoint != "" {
		opts = append(opts, option.WithEndpoint(s.endpoint))
	}
	client, err := gcp.NewService(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return newService(client), nil
}
