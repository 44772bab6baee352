// Package chaos answers queries of class CH about the server itself: version, host name and authors. Start at
// Chaos.ServeDNS.
package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "chaos"

// Chaos answers TXT queries of class CH for the names that it knows, and passes all others on.
type Chaos struct {
	Next    plugin.Handler
	Version string   // as version.bind tells it
	Authors []string // as authors.bind tells them

	noHostname bool // hostname.bind is not told
}

// Name is the plugin's name.
func (c Chaos) Name() string { return pluginName }

// ServeDNS answers what texts knows.
func (c Chaos) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) == 0 || r.Question[0].Qclass != dns.ClassCHAOS || r.Question[0].Qtype != dns.TypeTXT {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	name := r.Question[0].Name
	texts := c.texts(strings.ToLower(name))
	if texts == nil {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	m := new(dns.Msg).SetReply(r)
	hdr := dns.RR_Header{Name: name, Rrtype: dns.TypeTXT, Class: dns.ClassCHAOS}
	for _, text := range texts {
		m.Answer = append(m.Answer, &dns.TXT{Hdr: hdr, Txt: []string{text[:min(len(text), maxText)]}})
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// ServeWire passes on what is of class IN; no other comes this way.
func (c Chaos) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if q.Class() != wire.ClassIN {
		return wire.Unpack
	}
	return plugin.NextWire(c.Name(), c.Next, ctx, w, q)
}

// WireSelf returns c.
func (c Chaos) WireSelf() plugin.Handler { return c }

// Prompt implements plugin.Prompt.
func (c Chaos) Prompt() bool { return true }

// maxText is how long a string of a TXT record may be, in octets.
const maxText = 255

// texts is what stands at a name, nil if nothing does. Authors come in another order each time, so that none is always the first.
func (c Chaos) texts(name string) []string {
	switch name {
	case "version.bind.", "version.server.":
		return []string{c.Version}
	case "hostname.bind.", "id.server.":
		if c.noHostname {
			return nil
		}
		return []string{hostname()}
	case "authors.bind.":
		texts := make([]string, len(c.Authors))
		for i, at := range rand.Perm(len(c.Authors)) {
			texts[i] = c.Authors[at]
		}
		return texts
	}
	return nil
}

// hostname is the host's name, "localhost" if it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
