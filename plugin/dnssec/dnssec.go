// Package dnssec signs replies while they are on their way to the client (RFC 4034, 4035).
//
//	query with DO ──▶ ResponseWriter ──▶ plugins below
//	                        │ reply
//	                        ▼
//	   kind of reply ──▶ answer: sign each RRset        (sign.go)
//	                     denial: NSEC made for the name (denial.go: black lies, or RFC 9824)
//	                     referral: DS, or NSEC at the cut
//	                        │ RRset
//	                        ▼
//	   signatures ──known?──▶ cache ──else──▶ keys, once for all who want the same (signatures.go)
//
// Signatures are made when they are first asked for and kept; a keeper (keeper.go) takes old ones out of the cache and signs anew
// what is asked for before its time is up. Replies that plugins below wrote are not changed: what is signed is a copy.
//
// A Dnssec is used by any number of goroutines. Start at Dnssec.ServeDNS.
package dnssec

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/cache"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "dnssec"

var log = clog.NewWithPlugin(pluginName)

// Dnssec signs the replies of the plugins below for its zones.
type Dnssec struct {
	Next plugin.Handler

	zones  plugin.Zones
	served *wire.Suffixes[struct{}] // zones in wire form
	keys   keyring
	sigs   *signatures

	compact     bool        // deny as RFC 9824 says
	keepsRcodes func() bool // clients that understand compact denial get its rcode; nil means they do not
}

// New is a Dnssec that signs for zones, which are fully qualified and in lower case, with keys, and keeps signatures in c. If splitkeys is set,
// keys with the SEP flag sign DNSKEY records only, and the others all else.
func New(zones []string, keys []*DNSKEY, splitkeys bool, next plugin.Handler, c *cache.Cache[[]dns.RR]) Dnssec {
	d := Dnssec{Next: next, zones: zones, served: new(wire.Suffixes[struct{}]), keys: newKeyring(keys, splitkeys)}
	d.sigs = newSignatures(c, &d.keys)
	for _, z := range zones {
		if name, err := wire.LowerName(z); err == nil {
			d.served.Set(name, struct{}{})
		}
	}
	return d
}

// Name is the plugin's name.
func (d Dnssec) Name() string { return pluginName }

// ServeDNS answers queries for the DNSKEY records of its zones, has replies signed if the client asks for that with DO, and passes on
// all else.
func (d Dnssec) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	zone := d.zones.Matches(state.Name())
	if zone == "" || len(d.keys.all) == 0 || state.QClass() != dns.ClassINET {
		return plugin.NextOrFailure(d.Name(), d.Next, ctx, w, r)
	}
	server := metrics.WithServer(ctx)
	switch qtype := state.QType(); {
	case qtype == dns.TypeDNSKEY && state.Name() == zone:
		return dns.RcodeSuccess, w.WriteMsg(d.dnskeys(&state, zone, time.Now(), server))
	case !state.Do() || qtype == dns.TypeAXFR || qtype == dns.TypeIXFR:
		return plugin.NextOrFailure(d.Name(), d.Next, ctx, w, r)
	case d.compact && qtype == dns.TypeNXNAME:
		return dns.RcodeSuccess, w.WriteMsg(noQueryType(r))
	}
	return plugin.NextOrFailure(d.Name(), d.Next, ctx, &ResponseWriter{ResponseWriter: w, d: d, ctx: ctx, server: server, query: r}, r)
}

// ServeWire passes on what ServeDNS passes on as it is, and leaves the rest to it.
func (d Dnssec) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if (q.DO() || q.Type() == dns.TypeDNSKEY) && len(d.keys.all) > 0 {
		if _, ours := d.served.Longest(q.Lower()); ours {
			return wire.Unpack
		}
	}
	return plugin.NextWire(d.Name(), d.Next, ctx, w, q)
}

// WireSelf returns d.
func (d Dnssec) WireSelf() plugin.Handler { return d }

// dnskeys is the reply to a query for the zone's DNSKEY records, signed for those who ask for it.
func (d *Dnssec) dnskeys(state *request.Request, zone string, now time.Time, server string) *dns.Msg {
	m := new(dns.Msg).SetReply(state.Req)
	m.Authoritative = true
	for _, k := range d.keys.all {
		rr := dns.Copy(k.K)
		rr.Header().Name = state.QName()
		m.Answer = append(m.Answer, rr)
	}
	if state.Do() {
		m.Answer = append(m.Answer, d.sigs.of(m.Answer, zone, now, server)...)
	}
	return m
}

// signer is the zone that has the records of a type at owner, "" if it is none of ours: DS records belong to the zone above (RFC 4034 §5).
func (d *Dnssec) signer(owner string, rrtype uint16) string {
	zone := d.zones.Matches(owner)
	if rrtype != dns.TypeDS || zone == "" || len(zone) != len(dns.Fqdn(owner)) {
		return zone
	}
	others := slices.DeleteFunc(slices.Clone(d.zones), func(z string) bool { return z == zone })
	return others.Matches(owner)
}

// noQueryType is the reply to a query for a type that only stands in bitmaps (RFC 9824 §3.5).
func noQueryType(r *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetRcode(r, dns.RcodeFormatError)
	m.SetEdns0(dns.DefaultMsgSize, true)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeInvalidQueryType}}
	return m
}

// sameName compares two names without regard to case.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
