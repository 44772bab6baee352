package tls

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/mholt/acmez/v3/acme"
	"github.com/miekg/dns"
)

// challenges are the TXT records that show an authority that we answer for a name (RFC 8555 §8.4). Authorities ask for them, and
// Challenge answers.
type challenges struct {
	mu   sync.Mutex                          // writers only
	live atomic.Pointer[map[string][]string] // values by owner, in wire form and lower case; nil or never changed
}

// Present adds a record; it is called by certmagic, as is CleanUp.
func (c *challenges) Present(_ context.Context, ch acme.Challenge) error {
	return c.edit(ch, func(values []string, v string) []string {
		if slices.Contains(values, v) {
			return values
		}
		return append(slices.Clone(values), v)
	})
}

// CleanUp takes a record away.
func (c *challenges) CleanUp(_ context.Context, ch acme.Challenge) error {
	return c.edit(ch, func(values []string, v string) []string {
		return slices.DeleteFunc(slices.Clone(values), func(have string) bool { return have == v })
	})
}

func (c *challenges) edit(ch acme.Challenge, change func(values []string, v string) []string) error {
	owner, err := wire.LowerName(challengeOwner(ch.Identifier.Value))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[string][]string{}
	if old := c.live.Load(); old != nil {
		next = maps.Clone(*old)
	}
	values := change(next[string(owner)], ch.DNS01KeyAuthorization())
	if next[string(owner)] = values; len(values) == 0 {
		delete(next, string(owner))
	}
	c.live.Store(&next)
	return nil
}

// challengeOwner is the owner of the records that show that we answer for domain.
func challengeOwner(domain string) string {
	return dns.Fqdn(acme.Challenge{Identifier: acme.Identifier{Value: domain}}.DNS01TXTRecordName())
}

// values are the values of the records of an owner.
func (c *challenges) values(owner []byte) []string {
	live := c.live.Load()
	if live == nil || len(*live) == 0 {
		return nil
	}
	return (*live)[string(owner)]
}

// Challenge answers the questions of an authority. It stands in each server block, as the name may belong to any of them.
type Challenge struct {
	Next  plugin.Handler
	of    *challenges
	zones func() []string // names that they are at
}

// Name is the plugin's name.
func (c *Challenge) Name() string { return pluginName }

// CacheBypassZones implements cache.ZoneBypasser: what an authority asks for comes and goes within seconds, and a
// domain and the one of all hosts below it have it at one name, at different times.
func (c *Challenge) CacheBypassZones() []string { return c.zones() }

// ServeDNS answers if it is the question of an authority.
func (c *Challenge) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) != 1 || r.Question[0].Qtype != dns.TypeTXT || r.Question[0].Qclass != dns.ClassINET {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	defer adapter.Free()
	if !c.answer(&adapter.Reply, &adapter.Query) {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	return adapter.Write()
}

// ServeWire answers if it is the question of an authority.
func (c *Challenge) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if q.Type() == wire.TypeTXT && c.answer(w, q) {
		return wire.Done
	}
	return plugin.NextWire(c.Name(), c.Next, ctx, w, q)
}

// WireSelf returns c.
func (c *Challenge) WireSelf() plugin.Handler { return c }

// answer puts the records of a challenge into w, and reports whether there are some.
func (c *Challenge) answer(w *wire.Reply, q *wire.Query) bool {
	values := c.of.values(q.Lower())
	if len(values) == 0 {
		return false
	}
	w.Begin(q)
	w.SetWriter(pluginName)
	w.SetFlag(wire.FlagAA, true)
	for _, v := range values {
		rdata := append([]byte{byte(len(v))}, v...) // 43 octets
		w.Record(wire.Answer, q.Name(), wire.TypeTXT, wire.ClassIN, 0, rdata)
	}
	return true
}
