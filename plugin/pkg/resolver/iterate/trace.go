package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file serves a validator: it is told who answered, and others are asked where it found an answer to be bogus.
// Keys are asked of who told what they are to prove.

// doubts reports whether what is kept of the task's name is passed over, as it did not hold.
func (t *task) doubts() bool { return t == t.run.root && t.run.source.Doubts(t.name) }

// spared reports whether a server is not asked, as what it told did not hold.
func (t *task) spared(s *store.Server) bool {
	return t == t.run.root && t.run.source.Doubted(advice.Teller{Zone: t.cut.Zone, Server: s.Addr, Name: t.name})
}

// preferred is the server that a validator wants asked before others, nil if it is none of those that may be asked.
func (t *task) preferred(may []candidate) *store.Server {
	if t != t.run.root || t.run.source == nil {
		return nil
	}
	first := t.run.source.Preferred()
	for _, c := range may {
		if c.server.Addr == first {
			return c.server
		}
	}
	return nil
}

// trace notes who answered the client's question, or a part of it, and for which names: all that the reply has aliases
// of, and the one that is answered. A DNAME on the way to a name is a part, too.
func (t *task) trace(rd *reading) {
	aliases := len(t.chain)+len(rd.chain) > 0
	if t != t.run.root || rd.kind == referral || t.run.source == nil && !aliases || !t.here.last && !t.redirected(rd) {
		return
	}
	by := advice.Teller{Zone: t.cut.Zone, Server: t.server, Name: t.name}
	t.run.told(by, aliases)
	for i, l := range rd.chain {
		if l.set.Type == wire.TypeDNAME || rd.kind == aliasOn && i == len(rd.chain)-1 {
			continue
		}
		by.Name = rrset.Target(l.set.First())
		t.run.told(by, aliases)
	}
}

// told notes who told something of a name: for who traces the Run, and if there are aliases, in the Result.
func (r *Run) told(by advice.Teller, aliases bool) {
	if r.source != nil {
		r.source.Add(by)
	}
	if aliases {
		r.result.Tellers = append(r.result.Tellers, by)
	}
}

// redirected reports whether a DNAME leads on from the task's name.
func (t *task) redirected(rd *reading) bool {
	return rd.kind == aliasOn && rd.chain[0].set.Type == wire.TypeDNAME && aliased(t.q.Type)
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
