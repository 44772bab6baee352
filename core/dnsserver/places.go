package dnsserver

import (
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy/caddyfile"
)

// keyWords is the keys of blocks as they stand in the Corefile, for errors that name their place. Keys of which the
// place is not known, as where a program makes blocks of its own, are missing.
func (d *dnsContext) keyWords(blocks []caddyfile.ServerBlock) [][]corefile.Word {
	words := make([][]corefile.Word, len(blocks))
	if d.instance == nil || d.instance.Caddyfile() == nil {
		return words
	}
	input := d.instance.Caddyfile()
	// Read anew: caddy's tokens know the line of a key, and neither its column nor the import that it came by.
	outline := corefile.Read(input.Path(), input.Body())
	if len(outline.Blocks) != len(blocks) {
		return words
	}
	for b, block := range outline.Blocks {
		if len(block.Keys) == len(blocks[b].Keys) {
			words[b] = block.Keys
		}
	}
	return words
}

// wordAt is words[i], or one without a place.
func wordAt(words []corefile.Word, i int) corefile.Word {
	if i < len(words) {
		return words[i]
	}
	return corefile.Word{}
}
