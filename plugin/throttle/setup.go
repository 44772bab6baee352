package throttle

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the Corefile says.
type settings struct {
	responses, denials, errors int // replies a second to a network, 0 for any number
	perClient                  account
	slip                       int // of so many that are too much one gets a reply with TC; 0 none
	window                     int // seconds
	v4bits, v6bits             int
	exempt                     []netip.Prefix
	observe                    bool
}

// Bounds of the options.
const (
	maxRate   = 100_000
	maxWindow = time.Hour
	maxSlip   = 10
)

func defaults() settings {
	return settings{responses: 20, denials: 20, errors: 20, slip: 2, window: 15, v4bits: 24, v6bits: 56}
}

// rateRow is an option with a number of replies a second.
func rateRow(name, help string, of func(*settings) *int) corefile.Option[settings] {
	return corefile.Int(name, 0, maxRate, help+" a second to one network; 0 is any number", func(s *settings, n int) { *of(s) = n })
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Options: corefile.Table[settings]{
		rateRow("responses", "answers about the same name and type", func(s *settings) *int { return &s.responses }),
		rateRow("denials", "denials about the same zone", func(s *settings) *int { return &s.denials }),
		rateRow("errors", "errors", func(s *settings) *int { return &s.errors }),
		corefile.Row("queries", "N [BURST]", "queries a second of one client, and how many at once", 1, 2, setQueries),
		corefile.Int("slip", 0, maxSlip, "of so many replies that are too much one is sent with the TC bit; 0 sends none", func(s *settings, n int) { s.slip = n }),
		corefile.Duration("window", time.Second, maxWindow, "how long who went on is still held back", func(s *settings, d time.Duration) { s.window = int(d / time.Second) }),
		corefile.Row("prefix", "V4LEN V6LEN", "bits that networks have", 2, 2, setPrefix),
		corefile.Row("exempt", "SOURCE...", "networks that are not held back", 1, -1, setExempt),
		corefile.Flag("observe", "count only", func(s *settings) { s.observe = true }),
	},
})

func setQueries(s *settings, l *corefile.Line) (err error) {
	if s.perClient.rate, err = corefile.ParseInt("queries", l.Args[0], 1, maxRate); err != nil {
		return err
	}
	s.perClient.burst = s.perClient.rate
	if len(l.Args) > 1 {
		s.perClient.burst, err = corefile.ParseInt("queries", l.Args[1], 1, maxRate)
	}
	return err
}

func setPrefix(s *settings, l *corefile.Line) (err error) {
	if s.v4bits, err = corefile.ParseInt("prefix", l.Args[0], 8, 32); err != nil {
		return err
	}
	s.v6bits, err = corefile.ParseInt("prefix", l.Args[1], 16, 128)
	return err
}

func setExempt(s *settings, l *corefile.Line) error {
	for _, word := range l.Args {
		n, err := corefile.ParseSource(word)
		if err != nil {
			return fmt.Errorf("exempt: %w", err)
		}
		s.exempt = append(s.exempt, n.Masked())
	}
	return nil
}

// rate is how many replies of a kind a network gets.
func (s *settings) rate(kind reason) int {
	switch kind {
	case byDenials:
		return s.denials
	case byErrors:
		return s.errors
	}
	return s.responses
}

// network is the network of an address.
func (s *settings) network(a netip.Addr) netip.Addr {
	if a.Is4() {
		return masked(a, s.v4bits)
	}
	return masked(a, s.v6bits)
}

// isExempt reports whether a client is not held back.
func (s *settings) isExempt(a netip.Addr) bool {
	a = a.WithZone("")
	for _, n := range s.exempt {
		if n.Contains(a) {
			return true
		}
	}
	return !a.IsValid()
}

func setup(c *caddy.Controller) error {
	s := defaults()
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	s.perClient.window = s.window
	shared := newState(s)
	metrics.FromZero(c, shared.countFromZero)
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		return &Throttle{Next: next, state: shared}
	})
	return nil
}
