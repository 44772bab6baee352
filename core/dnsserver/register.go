package dnsserver

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/udp"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

const serverType = "dns"

func init() {
	flag.StringVar(&Port, serverType+".port", DefaultPort, "Default port")
	flag.StringVar(&Port, "p", DefaultPort, "Default port")
	flag.BoolVar(&WireLane, serverType+".wire", true, "Serve queries as bytes where plugins can")
	flag.BoolVar(&udp.Consolidate, serverType+".consolidate", true, "Let one loop serve the datagrams of an address while it keeps up")
	flag.BoolVar(&exec.AllowInline, serverType+".inline", true, "Call plugins that have always been quick where queries are read")
	flag.BoolVar(&mmsg.Segment, serverType+".segment", true, "Let queries for one upstream go to the kernel together")
}

// keyPos is where a key stands in the Corefile.
type keyPos struct{ block, key int }

// dnsContext is one configuration on its way from the Corefile to servers.
type dnsContext struct {
	instance *caddy.Instance
	configs  []*Config // in file order
	at       map[keyPos]*Config
	blocks   []caddyfile.ServerBlock
	once     bool      // for one question: see Once
	looked   bool      // only looked at: see Validated
	debug    bool      // a block wants debug lines
	servers  []*Server // once they are made, in file order
	ends     ends      // see OnEnd
	checks   []int     // of the instance's OnStartup, see Check
}

func (d *dnsContext) add(at keyPos, c *Config) {
	c.pos = at
	d.configs = append(d.configs, c)
	d.at[at] = c
}

// InspectServerBlocks makes a Config for each key and writes the keys back in
// their normal form, which plugins read as the block's zones.
func (d *dnsContext) InspectServerBlocks(_ string, blocks []caddyfile.ServerBlock) ([]caddyfile.ServerBlock, error) {
	if d.once {
		without(blocks, besides)
	}
	d.blocks = blocks
	places := d.keyWords(blocks)
	for b := range blocks {
		var first *Config
		var keys []string
		for i, key := range blocks[b].Keys {
			at := wordAt(places[b], i)
			if err := corefile.StrayKey(key, at); err != nil {
				return nil, err
			}
			zones, err := parseKey(key)
			if err != nil {
				return nil, corefile.ErrorAt(at, "%w", err)
			}
			for _, z := range zones {
				c := &Config{Zone: z.Zone, Port: z.Port, Transport: z.Transport, ListenHosts: []string{""}, word: at}
				if first == nil {
					first = c
				}
				c.first = first
				d.add(keyPos{b, len(keys)}, c)
				keys = append(keys, z.String())
			}
		}
		blocks[b].Keys = keys
	}
	return blocks, nil
}

// GetConfig is the Config of the key that a setup function is called for. Outside of
// a server block, as in tests, it is made at the first call.
func GetConfig(c *caddy.Controller) *Config {
	d := c.Context().(*dnsContext)
	at := keyPos{c.ServerBlockIndex, c.ServerBlockKeyIndex}
	if cfg, ok := d.at[at]; ok {
		return cfg
	}
	cfg := &Config{ListenHosts: []string{""}}
	cfg.first = cfg
	d.add(at, cfg)
	return cfg
}

// Instance is the instance that the configuration is of.
func (d *dnsContext) Instance() *caddy.Instance { return d.instance }

// Instance is the instance that a setup function is called for.
func Instance(c *caddy.Controller) *caddy.Instance { return c.Context().(*dnsContext).instance }

// AddPluginToAllServerBlocks puts m at the end of the chain of each block of the configuration.
func AddPluginToAllServerBlocks(c *caddy.Controller, m plugin.Plugin) {
	for _, cfg := range c.Context().(*dnsContext).configs {
		if cfg == cfg.first {
			cfg.AddPlugin(m)
		}
	}
}

// MakeServers makes a server for each address that the configuration listens on, in the order of the file.
func (d *dnsContext) MakeServers() ([]caddy.Server, error) {
	servers, err := d.makeServers()
	if err != nil {
		d.SetupFailed()
	}
	return servers, err
}

func (d *dnsContext) makeServers() ([]caddy.Server, error) {
	memory.Keep()
	memory.WatchCollections()
	for _, c := range d.configs {
		c.inherit()
		d.debug = d.debug || c.Debug
	}
	d.shareLimits()
	groups, order, err := d.group()
	if err != nil {
		return nil, err
	}
	logDebug(d.debug)
	warnOfSharing(groups, order)
	var servers []server
	for _, addr := range order {
		group := groups[addr]
		if err := oneIdentity(addr, group); err != nil {
			return nil, err
		}
		warnOfProxies(addr, group)
		for i := range socketsAt(addr, max(1, group[0].NumSockets)) {
			s, err := makeServer(addr, group)
			if err != nil {
				return nil, err
			}
			s.base().nth = i
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 {
		return nil, errors.New("no listeners configured")
	}
	if err := d.findViews(); err != nil {
		return nil, err
	}
	if err := d.checkOverlaps(); err != nil {
		return nil, err
	}
	d.newGeneration(servers)
	all := make([]caddy.Server, len(servers))
	for i, s := range servers {
		all[i] = s
		d.servers = append(d.servers, s.base())
	}
	return all, nil
}

// logDebug has the process log debug lines, or not.
func logDebug(on bool) {
	if on {
		log.D.Set()
	} else {
		log.D.Clear()
	}
}

// server is what all kinds of servers have in common.
type server interface {
	caddy.Server
	base() *Server
}

// makers make the servers of those schemes that a build may leave out: the tags nogrpc, nohttps, nohttps3 and
// noquic do that.
var makers = map[string]func(addr string, group []*Config) (server, error){}

var errLeftOut = errors.New("this program was built without")

func makeServer(addr string, group []*Config) (server, error) {
	switch scheme := group[0].Transport; scheme {
	case transport.GRPC, transport.HTTPS, transport.HTTPS3, transport.QUIC:
		newServer, ok := makers[scheme]
		if !ok {
			return nil, fmt.Errorf("%s: %w %s", addr, errLeftOut, scheme)
		}
		return newServer(addr, group)
	case transport.TLS:
		return NewServerTLS(addr, group)
	}
	return NewServer(addr, group)
}

// inherit takes over what the directives set, which are run for a block's first key only.
func (c *Config) inherit() {
	f := c.first
	if c == f || f == nil {
		return
	}
	own := Config{Zone: c.Zone, Port: c.Port, Transport: c.Transport, first: f, pos: c.pos, word: c.word}
	*c = *f
	c.Zone, c.Port, c.Transport, c.first, c.pos, c.word = own.Zone, own.Port, own.Transport, f, own.pos, own.word
	c.handlers, c.chain = nil, nil
	if f.TLSConfig != nil {
		c.TLSConfig = f.TLSConfig.Clone()
	}
}

// shareLimits makes the limits of the process the same for all listeners: what the first block says that says anything.
func (d *dnsContext) shareLimits() {
	waiting := firstSet(d.configs, func(c *Config) *int { return c.Limits.Waiting })
	bytes := firstSet(d.configs, func(c *Config) *int { return c.Limits.InFlightBytes })
	for _, c := range d.configs {
		c.Limits.Waiting, c.Limits.InFlightBytes = waiting, bytes
	}
}

// findViews makes those blocks views that have a Viewer in their chain.
func (d *dnsContext) findViews() error {
	for _, c := range d.configs {
		for _, h := range c.Handlers() {
			v, ok := h.(Viewer)
			if !ok {
				continue
			}
			if c.ViewName != "" {
				return corefile.ErrorAt(c.word, "multiple views defined in server block: leave one, and make a block of its own for each other")
			}
			c.ViewName = v.ViewName()
			c.FilterFuncs = append(c.FilterFuncs, v.Filter)
		}
	}
	return nil
}

func (d *dnsContext) checkOverlaps() error {
	seen := newOverlaps()
	for _, c := range d.configs {
		mine := map[string]bool{} // a block may name an address twice
		for _, h := range c.ListenHosts {
			if mine[h] {
				continue
			}
			mine[h] = true
			z := zoneAddr{Transport: c.Transport, Zone: c.Zone, Port: c.Port, Address: h}
			if err := seen.add(z, c.word.Place(), len(c.FilterFuncs) > 0); err != nil {
				return corefile.ErrorAt(c.word, "%w", err)
			}
		}
	}
	return nil
}

// portOfFlag says where the port of a key that names none comes from.
func (c *Config) portOfFlag() string {
	if c.Port != Port || c.Transport != transport.DNS || strings.HasSuffix(c.word.Text, ":"+Port) {
		return ""
	}
	return "; this one is that of the flag -" + serverType + ".port, as the key names none"
}

// group sorts the configs by the address of their listener, in file order.
func (d *dnsContext) group() (groups map[string][]*Config, order []string, err error) {
	groups = map[string][]*Config{}
	for _, c := range d.configs {
		mine := map[string]bool{}
		for _, h := range c.ListenHosts {
			if _, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(h, c.Port)); err != nil {
				return nil, nil, corefile.ErrorAt(c.word, "%w (a port is a number from 0 to 65535%s)", err, c.portOfFlag())
			}
			addr := zoneAddr{Transport: c.Transport, Port: c.Port, Address: strings.ToLower(h)}.listener()
			if mine[addr] {
				continue
			}
			mine[addr] = true
			if groups[addr] == nil {
				order = append(order, addr)
			}
			groups[addr] = append(groups[addr], c)
		}
	}
	return groups, order, nil
}
