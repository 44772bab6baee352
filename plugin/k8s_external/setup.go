package external

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

const maxTTL = 3600

var directive = corefile.Define(&corefile.Directive[External]{
	Name: pluginName,
	Args: corefile.Args[External]{Syntax: "[ZONES...]", Max: -1, Set: func(e *External, l *corefile.Line) (err error) {
		e.Zones, err = plugin.ZonesFromArgs(l.Args, l.Controller().ServerBlockKeys)
		plugin.Zones(e.Zones).Respell()
		return err
	}},
	Options: corefile.Table[External]{
		corefile.String("apex", "APEX", "the label below which the name servers stand (dns)", func(e *External, v string) { e.apex = strings.ToLower(strings.TrimSuffix(v, ".")) }),
		corefile.Row("ttl", "TTL", "of all records, in seconds (5)", 1, 1, func(e *External, l *corefile.Line) error {
			n, err := strconv.Atoi(l.Arg(0))
			if err == nil && (n < 0 || n > maxTTL) {
				err = fmt.Errorf("ttl must be in range [0, %d]: %d", maxTTL, n)
			}
			e.ttl = uint32(n)
			return err
		}),
		corefile.Flag("headless", "publish endpoints of headless services, too", func(e *External) { e.headless = true }),
		corefile.Fallthrough(func(e *External, zones []string) { e.Fall.SetZonesFromArgs(zones) }),
	},
	Check: (*External).check,
})

// check refuses an apex that makes no names: no reply could have a SOA record.
func (e *External) check() error {
	for _, z := range e.Zones {
		if _, ok := dns.IsDomainName(dnsutil.Join(hostmaster, e.apex, z)); !ok {
			return fmt.Errorf("apex %q makes no name below %s: a label has 1 to 63 octets, a name 255 at most", e.apex, z)
		}
	}
	return nil
}

func setup(c *caddy.Controller) error {
	e := New()
	if err := directive.Parse(c, e); err != nil {
		return err
	}
	config := dnsserver.GetConfig(c)
	dnsserver.Check(c, func() error { return e.findSource(config) })
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		e.Next = next
		return e
	})
	return nil
}

// findSource finds plugin kubernetes in the server block.
func (e *External) findSource(config *dnsserver.Config) error {
	h := config.Handler("kubernetes")
	if h == nil {
		return plugin.Error(pluginName, errors.New("kubernetes plugin not loaded: this server block needs it, too"))
	}
	source, ok := h.(Externaler)
	if !ok {
		return plugin.Error(pluginName, errors.New("kubernetes plugin does not implement the Externaler interface"))
	}
	if source, ok := h.(publisher); ok && e.headless {
		source.PublishEndpoints()
	}
	e.source = source
	return nil
}
