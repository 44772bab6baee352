package mirror

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// An alias is what providers have for a name, such as a zone's own, that is to have the addresses of another name: of a load balancer, say.
// The addresses are looked up when a client asks for them, by way of the whole server, and are the name's own then.
//
// In a zone, and so in its transfers, it is a record of a private type (RFC 6895 §3.1) with the other name as its RDATA. The first of these
// types is the one that other servers have for that.
const (
	aliasOfA    uint16 = 65401
	aliasOfAAAA uint16 = 65402
)

// Alias is a record by which owner has the addresses of target: those of IPv4 if typ is A, of IPv6 if it is AAAA.
func Alias(owner string, typ uint16, target string) (dns.RR, error) {
	private, ok := aliasType(typ)
	if !ok {
		return nil, fmt.Errorf("an alias of type %s", dns.TypeToString[typ])
	}
	name, err := wire.LowerName(target)
	if err != nil {
		return nil, fmt.Errorf("alias to %q: %w", target, err)
	}
	return &dns.RFC3597{Hdr: dns.RR_Header{Name: owner, Rrtype: private, Class: dns.ClassINET}, Rdata: hex.EncodeToString(name)}, nil
}

func aliasType(qtype uint16) (private uint16, ok bool) {
	switch qtype {
	case wire.TypeA:
		return aliasOfA, true
	case wire.TypeAAAA:
		return aliasOfAAAA, true
	}
	return 0, false
}

func isAlias(rr dns.RR) bool {
	typ := rr.Header().Rrtype
	return typ == aliasOfA || typ == aliasOfAAAA
}

// probe is what it takes to look for an alias; it is some kilobytes.
type probe struct {
	zone.Answerer
	wire.Reply
	room [512]byte // of the reply
}

var probes = sync.Pool{New: func() any { return new(probe) }}

// alias reports whether q is to be answered by aliases of z, and returns the way: CNAME records, if any, the aliases, and the records
// of the type that stand beside them. r is the query as a message; without one there is no way.
func (z *hosted) alias(q *wire.Query, r *dns.Msg) (way []dns.RR, found bool) {
	private, ok := aliasType(q.Type())
	if !ok || !z.aliases.Load() {
		return nil, false
	}
	v := z.zone.Current()
	if v == nil {
		return nil, false
	}
	p := probes.Get().(*probe)
	defer func() {
		p.Release()
		probes.Put(p)
	}()
	typ, mark := q.Type(), q.Mark()
	defer q.Restore(mark)
	if way, found = p.find(v, q, private, r); !found || r == nil {
		return nil, found
	}
	beside, _ := p.find(v, q, typ, r)
	for _, rr := range beside {
		if rr.Header().Rrtype == typ {
			way = append(way, rr)
		}
	}
	return way, true
}

// find is the answer of v to q, if that were for another type, and whether there is one. Without r it is not told which.
func (p *probe) find(v *zone.Zone, q *wire.Query, typ uint16, r *dns.Msg) (answer []dns.RR, found bool) {
	p.Reset(p.room[:0])
	q.SetType(typ)
	if p.Answer(v, &p.Reply, q) != zone.Hit {
		return nil, false
	}
	if r == nil {
		return nil, true
	}
	m, err := p.Msg(r)
	if err != nil {
		return nil, false
	}
	return m.Answer, true
}

// follow is the answer that a way leads to, nil if there is none. It is an error if nothing is found, and that there is nothing cannot
// be told: of several aliases one is enough.
func (z *hosted) follow(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, way []dns.RR) (*dns.Msg, error) {
	ctx, ok := upstream.Again(ctx, upstream.MaxLoops)
	if !ok {
		return nil, fmt.Errorf("aliases lead to one another: %s", r.Question[0].Name)
	}
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	typ := r.Question[0].Qtype
	met := map[string]bool{}
	var failed error
	for _, rr := range way {
		records := []dns.RR{rr}
		if isAlias(rr) {
			var err error
			if records, err = z.addresses(ctx, request.Request{W: w, Req: r}, rr.(*dns.RFC3597)); err != nil {
				failed = err
			}
		}
		for _, own := range records {
			if data := dataOf(own); !met[data] { // several may lead to one address
				met[data] = true
				m.Answer = append(m.Answer, own)
			}
		}
	}
	for _, rr := range m.Answer {
		if rr.Header().Rrtype == typ {
			return m, nil
		}
	}
	return nil, failed
}

// dataOf is a record's data.
func dataOf(rr dns.RR) string { return strings.TrimPrefix(rr.String(), rr.Header().String()) }

// addresses are what an alias leads to, as records of its owner.
func (z *hosted) addresses(ctx context.Context, state request.Request, alias *dns.RFC3597) ([]dns.RR, error) {
	rdata, err := hex.DecodeString(alias.Rdata)
	if err != nil {
		return nil, err
	}
	owner, target := alias.Header().Name, wire.Text(rdata)
	reply, err := z.zone.Upstream.Lookup(ctx, state, target, state.QType())
	switch {
	case err != nil:
		return nil, fmt.Errorf("alias %s to %s: %w", owner, target, err)
	case reply == nil || reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError:
		return nil, fmt.Errorf("alias %s to %s: no answer", owner, target)
	}
	return ownedBy(owner, reply.Answer, state.QType()), nil
}

// ownedBy is the records of a type among answers, as those of owner. They count for as long as all that led to them.
func ownedBy(owner string, answers []dns.RR, typ uint16) (all []dns.RR) {
	ttl := ^uint32(0)
	for _, rr := range answers {
		ttl = min(ttl, rr.Header().Ttl)
	}
	for _, rr := range answers {
		if rr.Header().Rrtype == typ {
			own := dns.Copy(rr)
			own.Header().Name, own.Header().Ttl = owner, ttl
			all = append(all, own)
		}
	}
	return all
}

// aliased reports whether some of the records are aliases.
func aliased(records []dns.RR) bool { return slices.ContainsFunc(records, isAlias) }
