package recurse

import (
	"runtime"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/aggressive"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	s := defaults()
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	cfg, label := dnsserver.GetConfig(c), ""
	labels := dnsserver.Labels(c.ServerBlockKeys, cfg)
	s.listeners = listenersOf(labels)
	text := s.identity(dnsserver.Identity(c, pluginName))
	r := &Recurse{zones: s.zones}
	if len(s.private) > 0 {
		r.guarded = s.guarded
	}
	metrics.FromZero(c, func(server string) {
		if label == "" {
			label = server
		}
	})
	c.OnStartup(func() error {
		warn(cfg, &s)
		r.agree(cfg, &s)
		text := text
		if v, ok := cfg.Handler("validator").(advice.Screener); ok && r.guarded != nil {
			s.screened = v.Screens()
			text += "\nscreened: " + strings.Join(s.screened, " ") // others do not screen what it resolves
		}
		r.details = plugin.TellsDetails(cfg.Handler("errors"))
		examiner, _ := cfg.Handler("validator").(advice.Examiner)
		r.resolver = take(text, func() *resolver {
			made := s.resolver(label)
			made.examineBy(examiner, false)
			return made
		})
		r.resolver.examineBy(examiner, false)
		r.resolver.taps.change(tapsOf(cfg), nil)
		c.OnShutdown(func() error {
			r.resolver.taps.change(nil, tapsOf(cfg))
			r.resolver.examineBy(examiner, true)
			give(text)
			return nil
		})
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		r.Next = next
		return r
	})
	return nil
}

// warn tells of what stands beside recurse in the block and is not as one may think.
func warn(cfg *dnsserver.Config, s *settings) {
	if cfg.Handler("cache") == nil {
		logger.Warning("There is no cache in the server block: names that are kept cost more")
	}
	if s.aggressive != "off" && s.aggressiveSaid && cfg.Handler("validator") == nil {
		logger.Infof("aggressive %s is off: there is no validator in the server block", s.aggressive)
	}
}

// forwarder is what stands before recurse in the block, and takes names of its own.
type forwarder interface {
	Takes(name []byte) bool
	LeaveOut(name []byte) bool
	ScrubAnswers()
	ReferBy(advice.Referrer)
	LeaveDS()
}

// referralKeeper is what keeps replies above recurse.
type referralKeeper interface{ LeaveReferrals() }

// agree has forwards of the block leave out the zones of stubs that lie below theirs, and scrub what they are told.
func (r *Recurse) agree(cfg *dnsserver.Config, s *settings) {
	for _, h := range cfg.Chain() {
		if k, ok := h.(referralKeeper); ok && s.snoop {
			k.LeaveReferrals()
		}
		f, ok := h.(forwarder)
		if !ok {
			continue
		}
		f.ScrubAnswers()
		f.LeaveDS()
		if s.snoop {
			told := newShown(r, f.Takes)
			r.shown = append(r.shown, told)
			f.ReferBy(told)
		}
		for zone := range s.stubs {
			f.LeaveOut([]byte(zone))
		}
		if f.Takes([]byte(rrset.Root)) {
			logger.Warning(`forward "." takes all names before recurse`)
		}
	}
}

// resolver is what the settings ask for; it has no sockets yet.
func (s *settings) resolver(label string) *resolver {
	r := &resolver{
		counts: newCounts(label), timeout: s.timeout, udpSize: uint16(s.udpSize), snoop: s.snoop,
		fetchesPerZone: s.perZone, fetchesPerServer: s.perServer, maxRecursions: s.recursions, sources: s.sources, prefetch: s.prefetch,
		memory: memory.Live(s.memory),
	}
	if r.maxRecursions == 0 {
		r.maxRecursions = min(max(memory.Waiting(memory.Limit()), 1), 65536)
	}
	stores := store.New(r.memory, s.servers)
	stores.Servers.SetKeep(s.keep)
	stores.Servers.OnSilence(tellSilence)
	if s.hints == nil {
		s.hints = builtinHints()
	}
	r.conf = iterate.Config{
		Hints: s.hints, Stubs: s.stubs, Stores: stores, Shared: &iterate.Shared{}, Minimise: s.minimise, Cut: s.cut, MixCase: s.mixCase,
		Subnets: s.subnets, Cookies: s.cookies,
		Port: uint16(s.port), Budget: s.budget, MinTTL: uint32(s.minTTL), MaxTTL: uint32(s.maxTTL), MaxNeg: uint32(s.maxNegative),
		Denied: s.denied, DeniedStub: s.deniedStub, Own: s.own,
		Peer:   r.peerOf,
		Proves: func(p any) bool { return p.(*peer).to.HasCookie() },
	}
	r.conf.Shared.Unready = func(why string) { logger.Warningf("priming failed: %s, using hints", why) }
	r.conf.Shared.Strange = r.strange
	r.conf.Ahead = r.ahead
	if len(s.private) > 0 {
		r.conf.Private, r.conf.Screened = s.guarded, s.screened
	}
	if s.aggressive != "off" {
		r.denials = aggressive.New(int(memory.Live(s.memory)/denialShare), s.aggressive == "nsec3")
		r.conf.Synthesize, r.conf.SOA = r.synthesize, r.soa
	}
	if s.special {
		except := append([]string(nil), s.notSpecial...)
		for zone := range s.stubs {
			except = append(except, zone)
		}
		r.specials = newSpecials(except)
		r.conf.Inside = r.specials.entry
	}
	r.keepRoot(s)
	r.flights.init()
	r.jobs.all, r.jobs.refreshes = map[jobKey]*job{}, map[jobKey]bool{}
	r.open(s)
	return r
}

// denialShare is which part of the stores' octets validated denials may take.
const denialShare = 16

// below reports whether name is in one of the zones.
func below(name string, zones []string) bool {
	for _, z := range zones {
		if rrset.Below(name, z) {
			return true
		}
	}
	return false
}

// open makes what sends and receives, and finds out which families there are.
func (r *resolver) open(s *settings) {
	if s.encrypt {
		r.encryption.begin()
	}
	for range min(proxyShards, 4*runtime.GOMAXPROCS(0)) {
		p := proxy.NewOpen(pluginName)
		p.OnIgnored(r.counts.ignored)
		r.proxies = append(r.proxies, p)
	}
	r.conf.IPv4, r.conf.IPv6 = s.family != "ipv6", s.family != "ipv4"
	switch s.family {
	case "prefer_ipv4":
		r.conf.Prefer = 4
	case "prefer_ipv6":
		r.conf.Prefer = 6
	}
	r.findWays()
}
