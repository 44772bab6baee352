package log

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const pluginName = "log"

// Formats that have a name.
const (
	// CommonLogFormat is {common}.
	CommonLogFormat = `{remote}:{port} ` + replacer.EmptyValue + ` {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}`
	// CombinedLogFormat is {combined}.
	CombinedLogFormat = CommonLogFormat + ` "{>opcode}"`
	// DefaultLogFormat is what a rule without a format has.
	DefaultLogFormat = CommonLogFormat
)

func init() { plugin.Register(pluginName, setup) }

// settings is one occurrence of the directive.
type settings struct {
	names   []string
	format  string
	classes []response.Class
	part
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[NAMES...] [FORMAT]", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		s.names, s.format = l.Args, DefaultLogFormat
		if last := len(l.Args) - 1; last > 0 && strings.Contains(l.Args[last], "{") {
			s.names, s.format = l.Args[:last], expand(l.Args[last])
		}
		if len(s.names) == 0 {
			s.names = []string{"."}
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Row("class", "CLASSES...", "log replies of these classes only: all, success, denial, error", 1, -1, addClasses),
		corefile.Int("sample", 1, 1<<30, "log one of N queries, chosen by chance", func(s *settings, n int) { s.sample = n }),
		corefile.Duration("slower", 0, time.Hour, "log queries only that took so long", func(s *settings, d time.Duration) { s.slower = d }),
	},
})

func addClasses(s *settings, l *corefile.Line) error {
	for _, word := range l.Args {
		class, err := response.ClassFromString(word)
		if err != nil {
			return l.Errf("%w%s", err, corefile.Choice(word, []string{"all", "success", "denial", "error"}))
		}
		s.classes = append(s.classes, class)
	}
	return nil
}

// expand puts the formats that have a name into a format.
func expand(format string) string {
	return strings.NewReplacer("{common}", CommonLogFormat, "{combined}", CombinedLogFormat).Replace(format)
}

// rules is the rules of all occurrences of the directive, in their order, and which part of the queries each logs.
func rules(c *caddy.Controller) (all []Rule, parts []part, err error) {
	list, err := directive.ParseEach(c, settings{})
	for _, s := range list {
		class := map[response.Class]struct{}{}
		for _, c := range s.classes {
			class[c] = struct{}{}
		}
		if len(class) == 0 {
			class[response.All] = struct{}{}
		}
		for _, name := range s.names {
			all = append(all, Rule{NameScope: dns.Fqdn(name), Format: s.format, Class: class})
			parts = append(parts, s.part)
		}
	}
	return all, parts, err
}

func setup(c *caddy.Controller) error {
	rules, parts, err := rules(c)
	if err != nil {
		return err
	}
	l := Logger{Rules: rules, ready: ready(rules, parts)}
	config := dnsserver.GetConfig(c)
	for _, r := range l.ready {
		r.anyAddress = slices.ContainsFunc(config.ListenHosts, isWildcard)
	}
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		l.Next = next
		return l
	})
	return nil
}

// isWildcard reports whether to listen on a host is to listen on all addresses.
func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// ready is rules made ready for use, nil if the scope of one of them is no name.
func ready(rules []Rule, parts []part) (all []*readyRule) {
	for i := range rules {
		name, err := wire.LowerName(rules[i].NameScope)
		if err != nil {
			return nil
		}
		r := rules[i].ready(parts[i])
		r.scope = name
		all = append(all, r)
	}
	return all
}
