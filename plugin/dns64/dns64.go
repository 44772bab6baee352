// Package dns64 gives clients that have nothing but IPv6 addresses of hosts that have nothing but IPv4 (RFC 6147): where there is no AAAA
// record it makes one of each A record, for a NAT64 that knows the prefix.
//
//	AAAA query ──▶ plugins below ──reply──▶ wanting ──no──▶ client
//	                                           │ yes
//	                   lookup of A by way of the server ──▶ Synthesize ──▶ client
//
// Queries that it may have to act on are served in the message lane, as the lookup waits; all others pass in either lane. It
// stands above cache, which keeps the replies that AAAA records are made of. Start at DNS64.ServeDNS.
package dns64

import (
	"context"
	"errors"
	"net"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "dns64"

// UpstreamInt looks names up by way of the server. The reply may be nil.
type UpstreamInt interface {
	Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error)
}

// DNS64 makes AAAA records below Prefix.
type DNS64 struct {
	Next         plugin.Handler
	Prefix       *net.IPNet // 32 to 96 bits, whole octets
	TranslateAll bool       // also for names that have AAAA records
	AllowIPv4    bool       // also for clients that ask over IPv4
	Upstream     UpstreamInt

	ptr bool // reverse names below Prefix lead to those of the IPv4 addresses
}

// Name is the plugin's name.
func (d *DNS64) Name() string { return pluginName }

// ServeDNS answers queries for AAAA records that are not there.
func (d *DNS64) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	if len(r.Question) == 0 || r.Opcode != dns.OpcodeQuery || state.QClass() != dns.ClassINET || !d.AllowIPv4 && state.Family() == 1 {
		return plugin.NextOrFailure(d.Name(), d.Next, ctx, w, r)
	}
	if four, ok := d.reverse(state.QType(), state.Name()); ok {
		return d.servePTR(ctx, &state, four)
	}
	if !concerns(state.QType(), state.Do(), r.CheckingDisabled) {
		return plugin.NextOrFailure(d.Name(), d.Next, ctx, w, r)
	}
	hw := &holder{Writer: nonwriter.New(w), all: d.TranslateAll}
	rcode, err := plugin.NextOrFailure(d.Name(), d.Next, ctx, hw, r)
	if hw.Msg == nil { // it was sent, or there is none
		return rcode, err
	}
	reply, lerr := d.DoDNS64(ctx, w, r, hw.Msg)
	if lerr != nil {
		return dns.RcodeServerFailure, lerr
	}
	if werr := w.WriteMsg(reply); err == nil {
		err = werr
	}
	return dns.RcodeSuccess, err
}

// holder is a writer that holds replies back which are wanting, and lets others pass.
type holder struct {
	*nonwriter.Writer
	all bool
}

func (h *holder) WriteMsg(m *dns.Msg) error {
	if wanting(m, h.all) {
		return h.Writer.WriteMsg(m)
	}
	return h.ResponseWriter.WriteMsg(withoutMapped(m))
}

// ServeWire passes queries on that need nothing.
func (d *DNS64) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if d.AllowIPv4 || !q.Client.Addr().Is4() {
		if concerns(q.Type(), q.DO(), q.CD()) || d.ptr && q.Type() == wire.TypePTR && wire.Below(q.Lower(), ip6arpa) {
			return wire.Unpack
		}
	}
	return plugin.NextWire(d.Name(), d.Next, ctx, w, q)
}

// WireSelf returns d.
func (d *DNS64) WireSelf() plugin.Handler { return d }

// concerns reports whether a reply to such a query may have to be made. Who asks for signatures and wants to check them
// alone gets what there is (RFC 6147 §5.5).
func concerns(qtype uint16, do, cd bool) bool { return qtype == dns.TypeAAAA && !(do && cd) }

// wanting reports whether a reply to a query for AAAA records lacks them, or is to be replaced in any case. A
// name that does not exist has no other records, either. One that was cut may have lost them: the client is to ask again.
func wanting(m *dns.Msg, all bool) bool {
	if m.Rcode == dns.RcodeNameError {
		return false
	}
	if all {
		return true
	}
	for _, rr := range m.Answer {
		if aaaa, ok := rr.(*dns.AAAA); ok && !isMapped(aaaa.AAAA) {
			return false
		}
	}
	return !m.Truncated
}

// isMapped reports whether an IPv6 address is an IPv4 address that is mapped; those count as none (RFC 6147 §5.1.4).
func isMapped(ip net.IP) bool { return ip.To4() != nil }

// withoutMapped is m without the AAAA records that count as none. What has been taken from is not authentic any more.
func withoutMapped(m *dns.Msg) *dns.Msg {
	counts := func(rr dns.RR) bool {
		aaaa, ok := rr.(*dns.AAAA)
		return !ok || !isMapped(aaaa.AAAA)
	}
	var kept []dns.RR
	for _, rr := range m.Answer {
		if counts(rr) {
			kept = append(kept, rr)
		}
	}
	if len(kept) == len(m.Answer) {
		return m
	}
	out := *m
	out.Answer, out.AuthenticatedData = kept, false
	return &out
}

var errNoReply = errors.New("no reply to the lookup of A records")

// DoDNS64 looks up A records for the name that r asks for, and returns the reply to r: one that is made of them, or
// origResponse, the reply that was wanting, if there are none. If the lookup does not tell, neither does the reply.
func (d *DNS64) DoDNS64(ctx context.Context, w dns.ResponseWriter, r, origResponse *dns.Msg) (*dns.Msg, error) {
	state := request.Request{W: w, Req: r}
	resp, err := d.Upstream.Lookup(ctx, state, state.QName(), dns.TypeA)
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return nil, plugin.Error(pluginName, errNoReply)
	}
	RequestsTranslatedCount.WithLabelValues(metrics.WithServer(ctx)).Inc()
	if !hasA(resp) && !(leavesOpen(resp) && wanting(origResponse, false)) {
		return withoutMapped(origResponse), nil
	}
	return d.Synthesize(r, origResponse, resp), nil
}

// leavesOpen reports whether m does not tell what there is: it failed, or was cut. The client is to ask again, and must
// not take it that there is nothing, which it would keep.
func leavesOpen(m *dns.Msg) bool {
	return m.Truncated || m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError
}

func hasA(m *dns.Msg) bool {
	for _, rr := range m.Answer {
		if rr.Header().Rrtype == dns.TypeA {
			return true
		}
	}
	return false
}
