package kubernetes

import (
	"errors"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

// ParseStanza reads one stanza, on whose first word c stands, and leaves c on its last one. The directive may bear
// another name: other plugins are configured by several of our stanzas and call this for each.
func ParseStanza(c *caddy.Controller) (*Kubernetes, error) {
	s := settings{Kubernetes: New(nil), keys: c.ServerBlockKeys}
	s.shared.config = dnsserver.GetConfig(c)
	alone := *c
	alone.Dispenser = caddyfile.NewDispenserTokens(c.File(), stanza(c))
	if err := directive.Parse(&alone, &s); err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // without the plugin's name, which is the caller's
		}
		return nil, err
	}
	return s.Kubernetes, nil
}

// stanza takes the words of one stanza out of c, with its places: a table reads all that it is given, so it gets no more.
func stanza(c *caddy.Controller) []caddyfile.Token {
	words := []caddyfile.Token{word(c)}
	for c.NextArg() {
		words = append(words, word(c))
	}
	if words[len(words)-1].Text != "{" {
		return words
	}
	for depth := 1; depth > 0 && c.Next(); {
		switch w := word(c); w.Text {
		case "{":
			depth++
		case "}":
			depth--
		}
		words = append(words, word(c))
	}
	return words
}

func word(c *caddy.Controller) caddyfile.Token {
	return caddyfile.Token{File: c.File(), Line: c.Line(), Text: c.Val()}
}
