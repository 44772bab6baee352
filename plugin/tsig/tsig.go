// Package tsig demands that queries are signed (RFC 8945), refuses those that are signed badly, and signs replies.
//
//	query ──transport: is the signature good?──▶ TSIGServer ──good, or none needed──▶ plugins below
//	                                                 │                                     │
//	client ◀──REFUSED, NOTAUTH──────────────────────-┘        client ◀──signed──Writer◀────┘
//
// The listener checks signatures with the secrets of all its server blocks before any plugin sees the query; this plugin
// acts on what it found. Plugins below ask ValidatedKeyName who signed. Start at TSIGServer.ServeDNS; verdict decides.
package tsig

import (
	"context"
	"errors"
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "tsig"

var logger = log.NewWithPlugin(pluginName)

// TSIGServer is the plugin. Its fields are to be set before it serves.
type TSIGServer struct {
	// Zones are fully qualified and in lower case.
	Zones []string
	Next  plugin.Handler

	demand demand
	clock  *lastTimes // nil: times may go back
}

// demand is which queries have to be signed.
type demand struct {
	types, opcodes set
}

// set is a set of numbers.
type set struct {
	all  bool
	some map[uint16]bool
}

func (s *set) has(n uint16) bool { return s.all || s.some[n] }

// wants reports whether a query has to be signed.
func (d *demand) wants(opcode int, qtype uint16) bool {
	return d.types.has(qtype) || d.opcodes.has(uint16(opcode))
}

// Name is the plugin's name.
func (t TSIGServer) Name() string { return pluginName }

// verdict is what becomes of a query.
type verdict uint8

const (
	pass    verdict = iota // unsigned, as it may be
	refused                // unsigned, as it may not be
	trusted                // signed well
	badKey                 // with a key that is not known
	badTime                // too early or too late
	badSig                 // anything else is wrong
)

// errorOf is a verdict's TSIG error (RFC 8945 §5.3.2).
func (v verdict) errorOf() uint16 {
	switch v {
	case badKey:
		return dns.RcodeBadKey
	case badTime:
		return dns.RcodeBadTime
	}
	return dns.RcodeBadSig
}

// judge decides about a query; status is what the transport says about its signature.
func judge(signed, demanded bool, status error) verdict {
	switch {
	case !signed && demanded:
		return refused
	case !signed:
		return pass
	case status == nil:
		return trusted
	case errors.Is(status, dns.ErrSecret):
		return badKey
	case errors.Is(status, dns.ErrTime):
		return badTime
	}
	return badSig
}

// ServeDNS acts on the signature of r, or on its absence.
func (t *TSIGServer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{Req: r, W: w}
	sig := r.IsTsig()
	demanded := t.demand.wants(r.Opcode, state.QType()) && !innerOfSigned(ctx)
	v := judge(sig != nil, demanded, w.TsigStatus())
	stray := hasStray(r)
	if v == pass && !stray || plugin.Zones(t.Zones).Matches(state.Name()) == "" {
		return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
	}
	if stray {
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeFormatError))
	}
	if v == trusted && t.clock.goesBack(sig) {
		v = badTime
	}
	switch v {
	case refused:
		logger.Debugf("rejecting '%s' request without TSIG", dns.TypeToString[state.QType()])
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeRefused))
	case trusted:
		return t.serveSigned(withKeyName(ctx, sig), w, r, sig)
	}
	logger.Debugf("TSIG validation failed: %v %v", dns.TypeToString[state.QType()], w.TsigStatus())
	m := new(dns.Msg).SetRcode(r, dns.RcodeNotAuth)
	state.SizeAndDo(m)
	m.Extra = append(m.Extra, complaint(r.Id, sig, v))
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// hasStray reports whether r has a TSIG record that is not its last one: no such message is to be acted on (RFC 8945 §5.1).
func hasStray(r *dns.Msg) bool {
	isTSIG := func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeTSIG }
	return slices.ContainsFunc(r.Answer, isTSIG) || slices.ContainsFunc(r.Ns, isTSIG) ||
		len(r.Extra) > 1 && slices.ContainsFunc(r.Extra[:len(r.Extra)-1], isTSIG)
}

// serveSigned passes the query on without its signature. Whatever the reply is, it is signed.
func (t *TSIGServer) serveSigned(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, sig *dns.TSIG) (int, error) {
	bare := *r
	bare.Extra = r.Extra[: len(r.Extra)-1 : len(r.Extra)-1]
	sw := &signer{Wrapped: plugin.Wrapped{ResponseWriter: w}, query: &bare, sig: sig}
	rcode, err := plugin.NextOrFailure(t.Name(), t.Next, ctx, sw, &bare)
	if !plugin.ClientWrite(rcode) && !sw.written {
		// The server would write this reply without a signature.
		if werr := sw.WriteMsg(edns.ErrorReply(&bare, rcode, err)); werr != nil {
			return dns.RcodeSuccess, errors.Join(err, werr)
		}
	}
	return dns.RcodeSuccess, err
}

// ServeWire passes queries on that need no signature. Signed ones never come this way.
func (t *TSIGServer) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if t.demand.wants(dns.OpcodeQuery, q.Type()) {
		return wire.Unpack
	}
	return plugin.NextWire(t.Name(), t.Next, ctx, w, q)
}

// WireSelf returns t.
func (t *TSIGServer) WireSelf() plugin.Handler { return t }
