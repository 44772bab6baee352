package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// This file serves a validator: it is told who answered, and others are asked where it found an answer to be bogus.

// doubts reports whether what is kept is passed over, as it did not hold.
func (t *task) doubts() bool { return t == t.run.root && t.run.source.Again() }

// spared reports whether a server is not asked, as what it told did not hold.
func (t *task) spared(s *store.Server) bool {
	return t == t.run.root && t.run.source.Doubted(advice.Teller{Zone: t.cut.Zone, Server: s.Addr})
}

// trace notes who answered the client's question, or a part of it.
func (t *task) trace(rd *reading) {
	if o := t.run.source; o != nil && t == t.run.root && rd.kind != referral && t.here.last {
		o.Add(advice.Teller{Zone: t.cut.Zone, Server: t.server})
	}
}

// leadsOut reports whether an NSEC record names a next name outside the zone whose server told it: none of a zone does
// (RFC 4034 §4.1.1).
func leadsOut(s *rrset.Set, zone string) (out bool) {
	if s.Type != rrset.TypeNSEC {
		return false
	}
	s.Each(func(rdata string) bool {
		n := 0
		for n < len(rdata) && rdata[n] != 0 {
			n += int(rdata[n]) + 1
		}
		out = n >= len(rdata) || !rrset.Below(rrset.Lower(rdata[:n+1]), zone)
		return !out
	})
	return out
}
