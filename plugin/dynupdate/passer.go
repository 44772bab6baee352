package dynupdate

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/tsig"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// passer passes updates of a zone on to the server that may make them (RFC 2136 §6). Queries are for the plugins below,
// of which one is a secondary of the zone.
//
//	without key: the same octets, so that the signature is between client and primary
//	with key:    the rules here decide, and the message is signed anew
type passer struct {
	next plugin.Handler
	settings
	to      updates.Forwarder
	findKey func(name string) (keyring.Key, bool)
	told    talk // what is logged of refusals
}

// passKey is the key that updates are signed with anew.
type passKey struct{ name, algorithm string } // algorithm is "" for the key's own

// updater is the directives of this plugin, which pass updates for the zones of others on to each other.
type updater interface {
	plugin.Handler
	takesUpdates()
}

func (d *DynUpdate) takesUpdates() {}
func (p *passer) takesUpdates()    {}

// Name implements plugin.Handler.
func (p *passer) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (p *passer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode != dns.OpcodeUpdate {
		return plugin.NextOrFailure(pluginName, p.next, ctx, w, r)
	}
	if len(r.Question) == 1 && dns.CanonicalName(r.Question[0].Name) != p.zone {
		if next, ok := p.next.(updater); ok {
			return next.ServeDNS(ctx, w, r)
		}
		m := new(dns.Msg).SetRcode(r, dns.RcodeNotAuth)
		m.RecursionDesired = r.RecursionDesired
		return dns.RcodeSuccess, w.WriteMsg(m) // servers write no NOTAUTH of their own (plugin.ClientWrite)
	}
	pass := p.pass
	if p.passKey.name != "" {
		if res, ok := p.mayPass(ctx, w, r); !ok {
			forwarded.WithLabelValues(p.zone, "refused").Inc()
			return dns.RcodeSuccess, w.WriteMsg(replyTo(r, res))
		}
		pass = p.passSigned
	}
	code, err := pass(ctx, w, r)
	result := "answered"
	switch {
	case err != nil:
		result, err = "failed", plugin.Error(pluginName, err)
	case code == dns.RcodeRefused:
		result = "refused"
	}
	forwarded.WithLabelValues(p.zone, result).Inc()
	return code, err
}

// ServeWire implements plugin.WireHandler.
func (p *passer) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire(pluginName, p.next, ctx, w, q)
}

// WireSelf implements plugin.WireHandler.
func (p *passer) WireSelf() plugin.Handler { return p }

// pass passes a message on as it came.
func (p *passer) pass(ctx context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
	return p.to.Serve(ctx, w, plugin.Packet(ctx))
}

// mayPass reports whether a message is to be passed on with another signature; if not, it logs why.
func (p *passer) mayPass(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (result, bool) {
	by, _ := tsig.Validated(ctx)
	metadata.SetValueFunc(ctx, "dynupdate/key", func() string { return by.Key })
	state := request.Request{W: w, Req: r}
	client, _ := netip.ParseAddr(state.IP())
	res, ok := malformed, false
	switch packet := plugin.Packet(ctx); {
	case packet != nil && !sound(packet):
	case updates.InCircle(w.RemoteAddr()):
		res = refused("the update was passed on from here")
	default:
		res, ok = p.allows(by.Key, client, r)
	}
	if !ok {
		p.told.of(p.zone, p.quiet, by.Key, state.IP(), res)
	}
	return res, ok
}

// passSigned passes a message on, signed with the key of the directive.
func (p *passer) passSigned(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	key, ok := p.findKey(p.passKey.name)
	if !ok {
		return dns.RcodeServerFailure, fmt.Errorf("there is no key %s any more", p.passKey.name)
	}
	m := r.Copy()
	if m.IsTsig() != nil {
		m.Extra = m.Extra[:len(m.Extra)-1]
	}
	keyring.Sign(m, p.passKey.name, cmp.Or(p.passKey.algorithm, key.Algorithm, keyring.DefaultAlgorithm))
	if by, ok := tsig.Validated(ctx); ok { // or a client that comes again would have its update made twice
		m.IsTsig().TimeSigned = passedOn.first(by, m.IsTsig().TimeSigned)
	}
	packet, mac, err := dns.TsigGenerate(m, key.Secret, "", false)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	packed, err := p.to.Forward(ctx, packet, w.RemoteAddr().Network() != "udp")
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	reply := new(dns.Msg)
	if err := wire.UnpackInto(reply, packed); err != nil {
		return dns.RcodeServerFailure, fmt.Errorf("the reply of the primary: %w", err)
	}
	if err := keyring.Verify(packed, key.Secret, mac, false); err != nil { // which writes to the packet
		return dns.RcodeServerFailure, fmt.Errorf("the reply of the primary: %w", err)
	}
	reply.Extra = reply.Extra[:len(reply.Extra)-1] // tsig signs for the client
	return dns.RcodeSuccess, w.WriteMsg(reply)
}

// allows reports whether the rules let a key change all that a message wants to change. What a name has is not known
// here: records of any type, perhaps.
func (p *passer) allows(key string, client netip.Addr, r *dns.Msg) (res result, ok bool) {
	if res, ok = p.admit(key, client, r); !ok {
		return res, false
	}
	perhaps := func(uint16) bool { return true }
	for _, rec := range records(r.Ns) {
		if rec.err == nil && !p.policy.allows(key, rec.owner, rec.typ, perhaps) {
			return refused("no permission for %s", rec), false
		}
	}
	return res, true
}
