package dns64

import (
	"fmt"
	"net"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/upstream"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// wellKnown is the prefix for networks without one of their own (RFC 6052 §2.1).
const wellKnown = "64:ff9b::/96"

var directive = corefile.Define(&corefile.Directive[DNS64]{
	Name: pluginName,
	Args: corefile.Args[DNS64]{Syntax: "[PREFIX]", Max: 1, Set: func(d *DNS64, l *corefile.Line) (err error) {
		if len(l.Args) > 0 {
			d.Prefix, err = parsePrefix(l.Args[0])
		}
		return err
	}},
	Options: corefile.Table[DNS64]{
		corefile.Row("prefix", "PREFIX", "the prefix of the NAT64", 1, 1, func(d *DNS64, l *corefile.Line) (err error) {
			d.Prefix, err = parsePrefix(l.Args[0])
			return err
		}),
		corefile.Flag("translate_all", "also for names that have AAAA records", func(d *DNS64) { d.TranslateAll = true }),
		corefile.Flag("allow_ipv4", "also for clients that ask over IPv4", func(d *DNS64) { d.AllowIPv4 = true }),
		corefile.Flag("translate_ptr", "lead reverse names below the prefix to those of the IPv4 addresses", func(d *DNS64) { d.ptr = true }),
	},
})

// parsePrefix reads an IPv6 network of 32, 40, ... or 96 bits.
func parsePrefix(text string) (*net.IPNet, error) {
	_, network, err := net.ParseCIDR(text)
	if err != nil {
		return nil, err
	}
	ones, bits := network.Mask.Size()
	if bits != 8*net.IPv6len {
		return nil, fmt.Errorf("invalid netmask %d IPv6 address: %q", bits, text)
	}
	if ones%8 != 0 || ones < 32 || ones > 96 {
		return nil, fmt.Errorf("invalid prefix length %q: must be a multiple of 8 from 32 to 96", text)
	}
	return network, nil
}

func setup(c *caddy.Controller) error {
	prefix, err := parsePrefix(wellKnown)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	settings := DNS64{Prefix: prefix, Upstream: upstream.New()}
	if err := directive.Parse(c, &settings); err != nil {
		return err
	}
	metrics.FromZero(c, func(server string) { RequestsTranslatedCount.WithLabelValues(server) })
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		d := settings
		d.Next = next
		return &d
	})
	return nil
}
