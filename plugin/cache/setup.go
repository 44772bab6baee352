package cache

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
)

func init() { plugin.Register("cache", setup) }

var directive = corefile.Define(&corefile.Directive[config]{
	Name:    "cache",
	Once:    true,
	Unknown: corefile.UnknownAsCount,
	Args:    corefile.Args[config]{Syntax: "[TTL] [ZONES...]", Max: -1, Set: setArgs},
	Options: corefile.Table[config]{
		classRow(Success, "positive answers", func(c *config) *class { return &c.success }),
		classRow(Denial, "denials (NXDOMAIN and NODATA)", func(c *config) *class { return &c.denial }),
		corefile.Row("memory", "SIZE", "let all caches of the process together take so many octets; the first server block that says it counts", 1, 1, setMemory),
		corefile.Row("prefetch", "AMOUNT [DURATION [PERCENTAGE%]]", "fetch names again that were asked for AMOUNT times, before they end", 1, 3, setPrefetch),
		corefile.Row("serve_stale", "[DURATION] [immediate [RESPONSE_TTL [FAILURE_RECHECK]] | verify [VERIFY_TIMEOUT [RESPONSE_TTL [FAILURE_RECHECK]]] | rfc8767]",
			"serve entries for DURATION after their end", 0, 5, setStale),
		corefile.Row("serve_stale_policy", "prefer_positive", "prefer positive entries to denials while serving stale ones", 1, 1, setStalePolicy),
		corefile.Row("servfail", "DURATION", "keep SERVFAIL replies for DURATION, at most 5m; 0 keeps none", 1, 1, setServfail),
		corefile.Flag("failures", "keep failures to get an answer, too (RFC 9520), first for the DURATION of servfail", func(c *config) { c.failures = true }),
		corefile.Row("disable", "success|denial [ZONES...]", "keep no such answers for the zones, or for all", 1, -1, setDisable),
		corefile.Row("ecs", "strip", "take client subnets (RFC 7871) out of queries, so that answers are the same for all clients", 1, 1, setECS),
		corefile.Flag("keepttl", "send the TTL as it was stored, not what is left of it", func(c *config) { c.keepTTL = true }),
		corefile.Flag("ignore_soa_minimum", "bound denials by the TTL of the SOA record only, not by its last field", func(c *config) { c.ignoreMinimum = true }),
	},
	Check: func(c *config) error {
		if c.preferPositive && c.stale == 0 && !c.staleSeen {
			return errors.New("serve_stale_policy requires serve_stale")
		}
		return nil
	},
})

// config is the settings with what is only of use while they are read.
type config struct {
	settings
	keys      []string // of the server block
	staleSeen bool
	bareTTL   string // a number that was taken for a zone
}

func setup(c *caddy.Controller) error {
	cfg := config{settings: defaults(), keys: c.ServerBlockKeys}
	if err := directive.Parse(c, &cfg); err != nil {
		return err
	}
	if cfg.bareTTL != "" {
		clog.Warningf("%q is taken for a zone: a TTL stands before the zones", cfg.bareTTL)
	}
	ca := &Cache{Zones: cfg.zones, settings: cfg.settings}
	ca.attach(c)
	block := dnsserver.GetConfig(c)
	block.AddPlugin(func(next plugin.Handler) plugin.Handler {
		ca.Next = next
		return ca
	})
	return nil
}

func setArgs(c *config, l *corefile.Line) (err error) {
	args := l.Args
	if len(args) > 0 {
		if ttl, err := strconv.ParseInt(args[0], 10, 64); err == nil { // long enough where an int is not
			if err := checkTTL(ttl); err != nil {
				return err
			}
			c.success.max, c.denial.max = uint32(ttl), uint32(ttl)
			args = args[1:]
		}
	}
	for _, a := range args {
		if _, err := strconv.ParseInt(a, 10, 64); err == nil {
			c.bareTTL = a
		}
	}
	c.zones, err = plugin.ZonesFromArgs(args, c.keys)
	return err
}

func checkTTL(ttl int64) error {
	if ttl <= 0 {
		return fmt.Errorf("cache TTL can not be zero or negative: %d", ttl)
	}
	if ttl > maxWireTTL {
		return fmt.Errorf("cache TTL exceeds the DNS TTL range: %d", ttl)
	}
	return nil
}

func classRow(name, what string, of func(*config) *class) corefile.Option[config] {
	return corefile.Row(name, "CAPACITY [TTL] [MINTTL]", "how many "+what+" are kept, and bounds of their TTLs in seconds", 1, -1, func(c *config, l *corefile.Line) (err error) {
		cl := of(c)
		if cl.capacity, err = strconv.Atoi(l.Args[0]); err != nil {
			return err
		}
		if len(l.Args) > 1 {
			ttl, err := strconv.Atoi(l.Args[1])
			if err != nil {
				return err
			}
			if err := checkTTL(int64(ttl)); err != nil {
				return err
			}
			cl.max = uint32(ttl)
		}
		if len(l.Args) > 2 {
			ttl, err := strconv.Atoi(l.Args[2])
			if err != nil {
				return err
			}
			if ttl < 0 {
				return fmt.Errorf("cache min TTL can not be negative: %d", ttl)
			}
			cl.min = uint32(min(ttl, maxWireTTL))
		}
		return nil
	})
}

func setPrefetch(c *config, l *corefile.Line) (err error) {
	if c.prefetch, err = strconv.Atoi(l.Args[0]); err != nil {
		return err
	}
	if c.prefetch < 0 {
		return fmt.Errorf("prefetch amount should be positive: %d", c.prefetch)
	}
	if len(l.Args) > 1 {
		if c.duration, err = time.ParseDuration(l.Args[1]); err != nil {
			return err
		}
	}
	if len(l.Args) > 2 {
		text := l.Args[2]
		number, ok := strings.CutSuffix(text, "%")
		if !ok {
			return fmt.Errorf("last character of percentage should be `%%`, but is: %q", rune(text[len(text)-1]))
		}
		if c.percentage, err = strconv.Atoi(number); err != nil {
			return err
		}
		if c.percentage < 10 || c.percentage > 90 {
			return fmt.Errorf("percentage should fall in range [10, 90]: %d", c.percentage)
		}
	}
	return nil
}

func setServfail(c *config, l *corefile.Line) error {
	d, err := time.ParseDuration(l.Args[0])
	switch {
	case err != nil:
		return err
	case d < 0:
		return errors.New("invalid negative ttl for servfail")
	case d > maxServfail:
		return errors.New("caching SERVFAIL responses over 5 minutes is not permitted")
	}
	c.servfail = d
	return nil
}

// leastMemory is what SIZE must be, at least.
const leastMemory = 1 << 20

func setMemory(c *config, l *corefile.Line) (err error) {
	if c.memory, err = corefile.ParseSize("memory", l.Args[0], 0, math.MaxInt64); err != nil {
		return err
	}
	if c.memory < leastMemory {
		return fmt.Errorf("memory must be at least 1M: %s", l.Args[0])
	}
	return nil
}

func setECS(c *config, l *corefile.Line) error {
	if l.Args[0] != "strip" {
		return fmt.Errorf("invalid value for ecs: %s: must be strip", l.Args[0])
	}
	c.stripECS = true
	return nil
}

func setDisable(c *config, l *corefile.Line) error {
	var cl *class
	switch l.Args[0] {
	case Success:
		cl = &c.success
	case Denial:
		cl = &c.denial
	default:
		return fmt.Errorf("cache type for disable must be %q or %q: %s", Success, Denial, l.Args[0])
	}
	if len(l.Args) == 1 {
		cl.disabled = append(cl.disabled, wire.Root)
	}
	for _, arg := range l.Args[1:] {
		zones := plugin.Host(arg).NormalizeExact()
		if zones == nil {
			return fmt.Errorf("invalid disabled zone: %s", arg)
		}
		for _, z := range zones {
			name, err := wire.LowerName(z)
			if err != nil {
				return fmt.Errorf("invalid disabled zone: %s", arg)
			}
			cl.disabled = append(cl.disabled, name)
		}
	}
	return nil
}
