package corefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// What is looked for is decided by words alone: nothing is set up, so a doubt may be wrong where a plugin of others
// stands between. It is a warning therefore, and never a refusal.
//
//	forward . 192.0.2.1     answers all queries of the block,
//	whoami                  so none gets here
//
//	example.org {           takes all queries,
//	    whoami
//	}
//	example.org {           so none gets to the view
//	    view internal {
//	        expr incidr(client_ip(), '10.0.0.0/8')
//	    }
//	}

// Doubt is something in a Corefile that can be served but is hardly what was meant.
type Doubt struct {
	Place string // file and line
	Text  string
}

// Doubts looks for what is allowed but does nothing: plugins that no query reaches, and words that look like another
// language. The Corefile is one that the parser took; order is the directives in the order of the chain.
func Doubts(o *Outline, order []string) (all []Doubt) {
	add := func(w Word, format string, args ...any) {
		all = append(all, Doubt{w.Place(), fmt.Sprintf(format, args...)})
	}
	told := map[string]bool{}
	for _, w := range o.Words {
		for _, odd := range oddities(w) {
			if !told[w.Place()+odd] {
				told[w.Place()+odd] = true
				add(w, "%s", odd)
			}
		}
	}
	for i := range o.Blocks {
		o.Blocks[i].doubts(order, add)
	}
	shadows(o.Blocks, add)
	return all
}

// doubts looks at one block.
func (b *Block) doubts(order []string, add func(Word, string, ...any)) {
	chain := slices.Clone(b.Directives)
	slices.SortStableFunc(chain, func(x, y Stanza) int {
		return slices.Index(order, x.Name.Text) - slices.Index(order, y.Name.Text)
	})
	zones := keyZones(b.Keys)
	var by *Stanza // what answers all queries of the block that reach it
	for i := range chain {
		s := &chain[i]
		if by != nil && asks(s) {
			add(s.Name, "plugin/%s: no query gets here: '%s' at %s answers all of them", s.Name.Text, by.Name.Text, by.Name.Place())
			continue
		}
		if by == nil && s.answersAll(zones) {
			by = s
		}
		for _, w := range s.Args() {
			if s.forwards() && parse.Endpoint(w.Text) != nil {
				add(w, "plugin/%s: '%s' has no port that there can be: it must be between 1 and 65535", s.Name.Text, w.Text)
			}
			if trans, _ := parse.Transport(w.Text); s.Name.Text == "grpc" && !slices.Contains([]string{transport.DNS, transport.GRPC, transport.UNIX}, trans) {
				add(w, "plugin/grpc: '%s' is no address that gRPC can be spoken with (dns, grpc, unix)", w.Text)
			}
		}
	}
	for _, k := range b.Keys {
		scheme, _, ok := strings.Cut(k.Text, "://")
		if ok && slices.Contains([]string{"tls", "quic", "https3"}, scheme) && !slices.ContainsFunc(b.Directives, func(s Stanza) bool { return s.Name.Text == "tls" }) {
			add(k, "'%s' is served without a certificate: the block has no tls", k.Text)
		}
	}
}

// sources is the plugins that answer queries on their own account, so that it matters whether any get there.
var sources = []string{"template", "hosts", "route53", "azure", "clouddns", "k8s_external", "kubernetes", "nomad", "file", "auto", "secondary", "etcd",
	"forward", "grpc", "recurse", "erratic", "whoami"}

// asks reports whether a directive is of use only if queries get there.
func asks(s *Stanza) bool { return slices.Contains(sources, s.Name.Text) }

func (s *Stanza) forwards() bool { return s.Name.Text == "forward" || s.Name.Text == "grpc" }

// answersAll reports whether a directive answers all queries for zones: those behind it get none.
func (s *Stanza) answersAll(zones []string) bool {
	args := s.Args()
	switch s.Name.Text {
	case "whoami":
		return true
	case "recurse", "erratic":
		return within(zones, args)
	case "forward", "grpc":
		// Options that hand some queries on leave some for those behind.
		return len(args) > 0 && within(zones, args[:1]) && !slices.ContainsFunc([]string{"except", "next", "next_on_nodata", "fallthrough", "max_concurrent"}, s.Has)
	case "kubernetes", "etcd", "secondary": // not auto, which passes on what lies in none of its zones
		return !s.Has("fallthrough") && within(zones, args)
	case "file":
		return len(args) > 0 && !s.Has("fallthrough") && within(zones, args[1:])
	}
	return false
}

// within reports whether all of zones lie in those that args name; none are all zones.
func within(zones []string, args []Word) bool {
	for _, z := range zones {
		in := len(args) == 0
		for _, a := range args {
			under := normalZone(a.Text)
			in = in || under == "." || z == under || strings.HasSuffix(z, "."+under)
		}
		if !in {
			return false
		}
	}
	return true
}

// normalZone is a zone in lower case with a final dot.
func normalZone(text string) string { return strings.TrimSuffix(strings.ToLower(text), ".") + "." }

// keyZones is the zones of keys.
func keyZones(keys []Word) (zones []string) {
	for _, k := range keys {
		_, zone := splitKey(k.Text)
		zones = append(zones, zone)
	}
	return zones
}

// splitKey is what of a key two blocks compete for: scheme and port, and the zone.
func splitKey(key string) (at, zone string) {
	scheme, rest, ok := strings.Cut(key, "://")
	if !ok {
		scheme, rest = "dns", key
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		return scheme + rest[i:], normalZone(rest[:i])
	}
	return scheme, normalZone(rest)
}

// shadows looks for views that stand behind a block for the same key that takes all queries.
func shadows(blocks []Block, add func(Word, string, ...any)) {
	// Blocks with the same key on different addresses do not meet.
	open := map[string]Word{} // by key, the block without a view that takes all
	for _, b := range blocks {
		view := slices.ContainsFunc(b.Directives, func(s Stanza) bool { return s.Name.Text == "view" })
		bind := ""
		for _, s := range b.Directives {
			if s.Name.Text == "bind" {
				bind = fmt.Sprint(s.Words)
			}
		}
		for _, k := range b.Keys {
			at, zone := splitKey(k.Text)
			id := at + " " + zone + " " + bind
			if before, ok := open[id]; ok && view {
				add(k, "no query gets to this view: the block at %s takes all for '%s' before", before.Place(), k.Text)
			} else if !view {
				open[id] = k
			}
		}
	}
}
