package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/fall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

const (
	publicAccess  = "public"
	privateAccess = "private"
)

// settings is what all directives of a server block say.
type settings struct {
	keys   map[string][]string // zones by resource group
	access map[string]string   // by RESOURCE_GROUP/ZONE
	fresh  []string            // those of the directive that is being read

	tenant, client, secret, subscription string
	cloud                                cloud.Configuration
	own                                  bool // the cloud is one of one's own
	fall                                 fall.F

	transport policy.Transporter // of a test; nil is the ordinary one
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Unknown: "unknown property: %q",
	Args: corefile.Args[settings]{Syntax: "RESOURCE_GROUP:ZONE...", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		s.fresh = nil
		for _, arg := range l.Args {
			group, zone, ok := strings.Cut(arg, ":")
			if !ok || group == "" || !mirror.IsZone(zone) {
				return fmt.Errorf("invalid resource group/zone: %q", arg)
			}
			id := group + separator + zone
			if s.access[id] != "" {
				return fmt.Errorf("conflicting zone: %q", zone)
			}
			s.keys[group] = append(s.keys[group], zone)
			s.access[id] = publicAccess
			s.fresh = append(s.fresh, id)
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.String("tenant", "TENANT_ID", "the tenant that asks", func(s *settings, v string) { s.tenant = v }),
		corefile.String("client", "CLIENT_ID", "the application that asks", func(s *settings, v string) { s.client = v }),
		corefile.String("secret", "CLIENT_SECRET", "its secret", func(s *settings, v string) { s.secret = v }),
		corefile.String("subscription", "SUBSCRIPTION_ID", "the subscription that has the zones", func(s *settings, v string) { s.subscription = v }),
		corefile.Row("environment", "ENVIRONMENT", "the cloud (AZUREPUBLICCLOUD)", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			if s.cloud, err = cloudNamed(l.Arg(0)); err != nil {
				return fmt.Errorf("cannot set azure environment: %q", err.Error())
			}
			s.own = strings.EqualFold(l.Arg(0), stack)
			return nil
		}),
		corefile.Row("access", "public|private", "what the zones of this directive are (public)", 1, 1, func(s *settings, l *corefile.Line) error {
			if a := l.Arg(0); a != publicAccess && a != privateAccess {
				return fmt.Errorf("invalid access value: can be public/private, found: %s", a)
			}
			for _, id := range s.fresh {
				s.access[id] = l.Arg(0)
			}
			return nil
		}),
		corefile.Fallthrough(func(s *settings, zones []string) { s.fall.SetZonesFromArgs(zones) }),
	},
})

// newSettings is those before anything was read.
func newSettings() *settings {
	return &settings{keys: map[string][]string{}, access: map[string]string{}, cloud: cloud.AzurePublic}
}

func setup(c *caddy.Controller) error { return newSettings().setup(c) }

func (s *settings) setup(c *caddy.Controller) error {
	if err := directive.Parse(c, s); err != nil {
		return err
	}
	s.complete()
	public, private, err := s.clients()
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	if dnsserver.Validated(c) {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &Azure{Next: next} })
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	dnsserver.OnEnding(c, cancel)
	h, err := New(ctx, public, private, s.keys, s.access)
	if err == nil {
		h.Fall = s.fall
		err = h.Run(ctx)
	}
	if err != nil {
		cancel()
		return plugin.Error(pluginName, err)
	}
	h.Install(c, func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	}, cancel)
	return nil
}

// complete takes what no directive says from the variables of the environment that Azure's own tools read.
func (s *settings) complete() {
	s.tenant = cmp.Or(s.tenant, os.Getenv("AZURE_TENANT_ID"))
	s.client = cmp.Or(s.client, os.Getenv("AZURE_CLIENT_ID"))
	s.secret = cmp.Or(s.secret, os.Getenv("AZURE_CLIENT_SECRET"))
	s.subscription = cmp.Or(s.subscription, os.Getenv("AZURE_SUBSCRIPTION_ID"))
}

// resource is where the cloud is asked for zones.
func (s *settings) resource() cloud.ServiceConfiguration {
	return s.cloud.Services[cloud.ResourceManager]
}

// clients are who asks for public and for private zones.
func (s *settings) clients() (*armdns.RecordSetsClient, *armprivatedns.RecordSetsClient, error) {
	if len(s.access) == 0 {
		return nil, nil, errors.New("no zones")
	}
	options := policy.ClientOptions{
		Cloud: s.cloud, Transport: s.transport,
		InsecureAllowCredentialWithHTTP: s.own && strings.HasPrefix(s.resource().Endpoint, "http:"),
	}
	credential, err := s.credential(options)
	if err != nil {
		return nil, nil, fmt.Errorf("credentials: %w", err)
	}
	arms := &arm.ClientOptions{ClientOptions: options, DisableRPRegistration: true}
	public, err := armdns.NewRecordSetsClient(s.subscription, credential, arms)
	if err != nil {
		return nil, nil, err
	}
	private, err := armprivatedns.NewRecordSetsClient(s.subscription, credential, arms)
	return public, private, err
}
