package header

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

var directive = corefile.Define(&corefile.Directive[Header]{
	Name:           pluginName,
	Unlisted:       addRules, // words of any case, which rows do not have
	UnlistedSyntax: "query|response set|clear FLAG...",
})

// addRules reads a line of the block.
func addRules(h *Header, l *corefile.Line) (bool, error) {
	rules := &h.QueryRules
	switch strings.ToLower(l.Name()) {
	case "query":
	case "response":
		rules = &h.ResponseRules
	default:
		return true, fmt.Errorf("setting up rule: invalid selector=%s should be query or response", l.Name())
	}
	parsed, err := parseRules(l.Args)
	if err != nil {
		return true, fmt.Errorf("setting up rule: %w", err)
	}
	*rules = append(*rules, parsed...)
	return true, nil
}

// parseRules reads an action and the flags that it is for.
func parseRules(words []string) (rules []Rule, err error) {
	switch len(words) {
	case 0:
		return nil, errors.New("no flag action provided, should be set or clear")
	case 1:
		return nil, errors.New("invalid length for flags, at least one should be provided")
	}
	state := false
	switch strings.ToLower(words[0]) {
	case "set":
		state = true
	case "clear":
	default:
		return nil, fmt.Errorf("unknown flag action=%s, should be set or clear", words[0])
	}
	for _, word := range words[1:] {
		r := Rule{Flag: strings.ToLower(word), State: state}
		if r.bit() == 0 {
			return nil, fmt.Errorf("unknown/unsupported flag=%s (allowed: %s, %s, %s)", word, authoritative, recursionAvailable, recursionDesired)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, Header{})
	if err != nil {
		return err
	}
	for _, h := range all { // of several directives the first that says anything holds
		if len(h.QueryRules)+len(h.ResponseRules) == 0 {
			continue
		}
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			h.Next = next
			return h
		})
		return nil
	}
	return plugin.Error(pluginName, fmt.Errorf("%w (no rule is there: query|response set|clear FLAG...)", c.ArgErr()))
}
