package dnsserver

import (
	"strconv"
	"strings"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

// Stanza is what the server block that a setup function is called for says of a directive, in a form in which two
// texts are the same if they mean the same: with imports and environment variables in place, without comments and
// places. It is "" if the block does not say anything.
func Stanza(c *caddy.Controller, directive string) string {
	d := c.Context().(*dnsContext)
	if c.ServerBlockIndex >= len(d.blocks) {
		return "" // outside of a server block, as in tests
	}
	return textOf(d.blocks[c.ServerBlockIndex].Tokens[directive])
}

// Blocks are controllers for all server blocks, by which Stanza tells what they say.
func Blocks(c *caddy.Controller) []caddy.Controller {
	d := c.Context().(*dnsContext)
	all := make([]caddy.Controller, len(d.blocks))
	for i, b := range d.blocks {
		all[i] = *c
		all[i].ServerBlockIndex, all[i].ServerBlockKeyIndex, all[i].ServerBlockKeys = i, 0, b.Keys
	}
	return all
}

// Identity is the text by which what a directive makes is told from what others make, over reloads, too: its Stanza
// with the folder and the listeners of the block.
func Identity(c *caddy.Controller, directive string) string {
	cfg := GetConfig(c)
	return Stanza(c, directive) + "\n" + cfg.Root + "\n" + strings.Join(Labels(c.ServerBlockKeys, cfg), " ")
}

// textOf is tokens as text, a line for each of theirs.
func textOf(tokens []caddyfile.Token) string {
	var b []byte
	for i, t := range tokens {
		if i > 0 {
			if last := tokens[i-1]; last.File != t.File || last.Line != t.Line {
				b = append(b, '\n')
			} else {
				b = append(b, ' ')
			}
		}
		b = strconv.AppendQuote(b, t.Text)
	}
	return string(b)
}
