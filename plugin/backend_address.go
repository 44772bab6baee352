package plugin

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// maxAliases is how many aliases before it an alias may have.
const maxAliases = 10

// maxRecords is more than any message has room for: a record takes two octets each for its name, type, class and
// length, four for its TTL, and two of data at least.
const maxRecords = wire.MaxMessage / 14

// A returns the A records of the name of state. Services that are aliases are followed (RFC 1034 §3.6.2): within zone
// in the backend, else by Lookup; and by Lookup, too, where the backend does not have the name, for somebody else may.
// An alias within zone whose target has nothing is left out. previousRecords are the aliases that led here, nil for a
// client's question.
//
// At the name of the zone itself the services of apex.dns.ZONE count, if there are any. truncated says that an answer
// of Lookup was cut short. An error is that of Services.
func A(ctx context.Context, b ServiceBackend, zone string, state request.Request, previousRecords []dns.RR, opt Options) (records []dns.RR, truncated bool, err error) {
	l := lookup{ctx: ctx, backend: b, zone: zone, opt: opt, typ: dns.TypeA}
	records, err = l.run(state, previousRecords)
	return records, l.truncated, err
}

// AAAA returns the AAAA records of the name of state; see A.
func AAAA(ctx context.Context, b ServiceBackend, zone string, state request.Request, previousRecords []dns.RR, opt Options) (records []dns.RR, truncated bool, err error) {
	l := lookup{ctx: ctx, backend: b, zone: zone, opt: opt, typ: dns.TypeAAAA}
	records, err = l.run(state, previousRecords)
	return records, l.truncated, err
}

// TXT returns the TXT records of the name of state: one for each service that has a text and whose host is no address.
// Aliases are followed as by A; apex.dns.ZONE has no part in it.
func TXT(ctx context.Context, b ServiceBackend, zone string, state request.Request, previousRecords []dns.RR, opt Options) (records []dns.RR, truncated bool, err error) {
	l := lookup{ctx: ctx, backend: b, zone: zone, opt: opt, typ: dns.TypeTXT}
	records, err = l.run(state, previousRecords)
	return records, l.truncated, err
}

// CNAME returns the CNAME record of the first service that stands exactly at the name of state, if its host is a name.
func CNAME(ctx context.Context, b ServiceBackend, zone string, state request.Request, opt Options) (records []dns.RR, err error) {
	services, err := b.Services(ctx, state, true, opt)
	if err != nil || len(services) == 0 {
		return nil, err
	}
	if s := &services[0]; s.Host != "" && net.ParseIP(s.Host) == nil {
		return []dns.RR{s.NewCNAME(state.QName(), s.Host)}, nil
	}
	return nil, nil
}

// PTR returns the PTR records of the reverse name of state: one for each name of a host that has the address.
func PTR(ctx context.Context, b ServiceBackend, zone string, state request.Request, opt Options) (records []dns.RR, err error) {
	services, err := b.Reverse(ctx, state, true, opt)
	if err != nil {
		return nil, err
	}
	var hosts tally[string]
	for i := range services {
		s := &services[i]
		if s.Host != "" && net.ParseIP(s.Host) == nil && hosts.first(s.Host) {
			records = append(records, s.NewPTR(state.QName(), s.Host))
		}
	}
	return records, nil
}

// lookup finds the records of one type behind a name and its aliases.
type lookup struct {
	ctx     context.Context
	backend ServiceBackend
	zone    string
	opt     Options
	typ     uint16

	truncated bool // an answer of Lookup was cut short
	effort    effort
}

// run returns the records of the name of state, to which the aliases previous led.
func (l *lookup) run(state request.Request, previous []dns.RR) (records []dns.RR, err error) {
	services, err := l.services(state)
	if err != nil {
		return nil, err
	}
	var seen, met tally[string]
	for i := range services {
		if len(records) > maxRecords {
			break
		}
		s := &services[i]
		switch what, ip := s.HostType(); {
		case what == dns.TypeCNAME:
			found := l.follow(state, s, previous, &met)
			for _, rr := range found {
				if alias, ok := rr.(*dns.CNAME); ok {
					met.first(strings.ToLower(alias.Target))
				}
			}
			records = append(records, found...)
		case what != l.typ:
		case what == dns.TypeA && seen.first(string(ip)):
			records = append(records, s.NewA(state.QName(), ip))
		case what == dns.TypeAAAA && seen.first(string(ip)):
			records = append(records, s.NewAAAA(state.QName(), ip))
		case what == dns.TypeTXT && seen.first(s.Text):
			records = append(records, s.NewTXT(state.QName()))
		}
	}
	return records, nil
}

// services returns what stands at the name of state. The zone's own addresses stand at apex.dns.ZONE, as the
// services at ZONE itself are all that are below it.
func (l *lookup) services(state request.Request) ([]msg.Service, error) {
	if l.typ == dns.TypeTXT || state.Name() != Name(l.zone).Normalize() {
		return l.backend.Services(l.ctx, state, false, l.opt)
	}
	services, err := l.backend.Services(l.ctx, asking(state, dnsutil.Join("apex.dns", l.zone), state.QType()), false, l.opt)
	if err != nil && l.backend.IsNameError(err) {
		return l.backend.Services(l.ctx, state, false, l.opt)
	}
	return services, err
}

// follow returns the alias that s is, and what its target has; nothing if the target is one that was met already, in
// met or on the way here, or cannot be resolved.
func (l *lookup) follow(state request.Request, s *msg.Service, previous []dns.RR, met *tally[string]) []dns.RR {
	alias := s.NewCNAME(state.QName(), s.Host)
	switch {
	case s.Host == "", dns.IsSubDomain(state.QName(), alias.Target): // it would come back to the name
		return nil
	case len(previous) > maxAliases, dnsutil.DuplicateCNAME(alias, previous), !met.first(strings.ToLower(alias.Target)):
		return nil
	case len(previous) > 0 && !l.effort.follows():
		return nil
	}
	if dns.IsSubDomain(l.zone, alias.Target) {
		found, err := l.run(asking(state, alias.Target, l.typ), append(slices.Clip(previous), alias))
		if err != nil && l.backend.IsNameError(err) {
			m := l.effort.elsewhere(l.ctx, l.backend, state, alias.Target, l.typ)
			found, l.truncated = m.Answer, l.truncated || m.Truncated
		}
		if len(found) == 0 {
			return nil
		}
		return append([]dns.RR{alias}, found...)
	}
	m, err := l.backend.Lookup(l.ctx, state, alias.Target, l.typ)
	if err != nil || m == nil {
		return nil
	}
	l.truncated = l.truncated || m.Truncated
	return append([]dns.RR{alias}, m.Answer...)
}

// effort is what one question has led to so far.
type effort struct{ followed, asked int }

const (
	// maxFollowed is how many aliases are followed that others have led to, in all: where each leads to several others,
	// maxAliases alone would let them be thousands of millions.
	maxFollowed = 256
	// maxElsewhere is how many lookups one question leads to: names that are nowhere are not to cost much.
	maxElsewhere = 10
)

// follows reports whether one more alias is followed.
func (e *effort) follows() bool {
	e.followed++
	return e.followed <= maxFollowed
}

// elsewhere asks others for a name of the zone that the backend does not have: there may be a zone below this one. It
// returns an empty message if there is nothing.
func (e *effort) elsewhere(ctx context.Context, b ServiceBackend, state request.Request, name string, typ uint16) *dns.Msg {
	if e.asked++; e.asked <= maxElsewhere {
		if m, err := b.Lookup(ctx, state, name, typ); err == nil && m != nil && m.Rcode == dns.RcodeSuccess {
			return m
		}
	}
	return new(dns.Msg)
}
