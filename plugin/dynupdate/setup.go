package dynupdate

import (
	"fmt"
	"slices"
	"sort"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/dynupdate/signing"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

// settle refuses a zone that is against the limits, or has records that are not taken. Those of DNSSEC in a zone that was
// signed here are.
func (s *settings) settle(v *zone.Zone, signed bool) error {
	switch records, octets := v.Unproved(); {
	case records > s.maxRecords:
		return fmt.Errorf("zone %s has %d records, max_records is %d", s.zone, records, s.maxRecords)
	case octets > s.maxBytes:
		return fmt.Errorf("zone %s has %d octets of records, max_bytes is %d", s.zone, octets, s.maxBytes)
	}
	for name, n := range v.Nodes() {
		for set := range n.Sets() {
			if signed && signing.Manages(set.Type()) {
				continue
			}
			if !s.policy.takes(set.Type(), len(name) == len(s.origin), "", nil) || set.Signatures() != nil && !signed {
				typ := dns.Type(set.Type()).String()
				if set.Signatures() != nil {
					typ = "RRSIG"
				}
				return fmt.Errorf("zone %s has records of type %s at %s, which this plugin does not keep right", s.zone, typ, wire.Text(name))
			}
		}
	}
	return nil
}

func setup(c *caddy.Controller) error {
	cfg := dnsserver.GetConfig(c)
	initial := defaults()
	initial.keys, initial.root = c.ServerBlockKeys, cfg.Root
	all, err := directive.ParseEach(c, initial)
	if err != nil {
		return err
	}
	// The zone with the longest name is asked first.
	sort.SliceStable(all, func(i, j int) bool { return len(all[i].origin) > len(all[j].origin) })
	zones, stands := map[string]*file.Zone{}, map[string]bool{}
	var ds []*DynUpdate
	for i, s := range all {
		if stands[s.zone] {
			return plugin.Error(pluginName, fmt.Errorf("zone %q stands twice in the server block", s.zone))
		}
		if stands[s.zone] = true; s.passes() {
			addPasser(c, cfg, &passer{settings: s, to: updates.Forwarder{Servers: s.to}, findKey: cfg.TsigKey})
			continue
		}
		d := &DynUpdate{Zone: s.zone, settings: all[i]}
		if d.store, err = d.open(c); err != nil {
			return plugin.Error(pluginName, err)
		}
		zones[s.zone] = d.store.served
		ds = append(ds, d)
		writable(c)[s.zone] = append(writable(c)[s.zone], d)
	}
	cfg.AllowOpcode(dns.OpcodeUpdate)
	for _, d := range ds {
		if len(ds) > 1 {
			d.index = file.NewIndex(zones)
		}
		dnsserver.Check(c, func() error { return d.findFollowed(writable(c)) })
		d.hook(c, cfg)
		cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
			d.Next = next
			return d
		})
	}
	return nil
}

// inMemory is where a store without a database is kept for the other keys of its server block: directives are set up once
// for each.
type inMemory struct {
	block int
	zone  string
}

// open finds or makes the directive's store.
func (d *DynUpdate) open(c *caddy.Controller) (*store, error) {
	shared := inMemory{c.ServerBlockIndex, d.Zone}
	if s, ok := c.Get(shared).(*store); ok && d.database == "" {
		return s, nil
	}
	by := claimed(dnsserver.Instance(c), c.ServerBlockKeyIndex)
	s, err := openStore(source{
		zone: d.Zone, database: d.database, seed: d.file, settle: d.settle, keep: d.journal,
		claim: by, looks: dnsserver.Validated(c),
	})
	switch {
	case err != nil:
		return nil, err
	case d.database == "":
		c.Set(shared, s)
	default:
		dnsserver.OnEnd(c, func() error { abandon(s, by); return nil })
	}
	return s, nil
}

// writableKey is where the zones of a configuration are kept that are written to.
type writableKey struct{}

// writable is the directives of the configuration, by their zones.
func writable(c *caddy.Controller) map[string][]*DynUpdate {
	all, ok := c.Get(writableKey{}).(map[string][]*DynUpdate)
	if !ok {
		all = map[string][]*DynUpdate{}
		c.Set(writableKey{}, all)
	}
	return all
}

// findFollowed finds the stores of the zones that reverse_of names.
func (d *DynUpdate) findFollowed(all map[string][]*DynUpdate) error {
	d.followed = nil
	for _, origin := range d.reverseOf {
		name := wire.Text(origin)
		of := all[name]
		switch {
		case len(of) == 0:
			return plugin.Error(pluginName, fmt.Errorf("reverse_of: there is no dynupdate for zone %q", name))
		case slices.ContainsFunc(of, func(o *DynUpdate) bool { return o.store != of[0].store }):
			return plugin.Error(pluginName, fmt.Errorf("reverse_of: zone %q is there several times: all have to have the same database", name))
		case d.database != "" && of[0].database == "":
			return plugin.Error(pluginName, fmt.Errorf("reverse_of: zone %q has no database, but %q has one", name, d.Zone))
		}
		d.followed = append(d.followed, of[0].store)
	}
	return nil
}

// addPasser adds a directive that passes updates on.
func addPasser(c *caddy.Controller, cfg *dnsserver.Config, p *passer) {
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		p.next = next
		return p
	})
	dnsserver.Check(c, func() error {
		if _, ok := p.findKey(p.passKey.name); !ok && p.passKey.name != "" {
			return plugin.Error(pluginName, fmt.Errorf("forward: there is no key %q: the tsig plugin has to have it", p.passKey.name))
		}
		return nil
	})
}

// terms is what the directive asks of its store.
func (d *DynUpdate) terms(generation any) terms {
	return terms{by: d, generation: generation, keep: d.journal, keys: d.keyPairs, nsec3: d.nsec3, serials: d.serial, follows: d.followed}
}

// hook ties a zone to the life of its server.
func (d *DynUpdate) hook(c *caddy.Controller, cfg *dnsserver.Config) {
	c.OnStartup(func() error {
		c.OnShutdown(func() error {
			if d.notify.end() {
				d.store.pending.Add(-1)
			}
			d.leave.Do(func() { release(d.store, d) })
			return nil
		})
		if err := d.store.enter(d.terms(dnsserver.Instance(c))); err != nil {
			return plugin.Error(pluginName, err)
		}
		if d.database == "" {
			logger.Warningf("Zone %s has no database: its changes are lost with a restart, and with a reload", d.Zone)
		}
		for _, key := range d.policy.without(func(key string) bool { _, ok := cfg.TsigKey(key); return ok }) {
			logger.Warningf("Zone %s: the tsig plugin has no key %q, so nobody can sign updates with it", d.Zone, key)
		}
		d.Xfer, _ = cfg.Handler("transfer").(*transfer.Transfer)
		d.store.listen(d)
		d.Xfer.NotifyLater(d.Zone)
		return nil
	})
}
