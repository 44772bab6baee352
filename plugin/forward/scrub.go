package forward

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// In a server block that resolves names from the root, an upstream is believed as little as the servers of zones are: what
// stands in its answers beside the name that was asked, and the aliases that lead on from it, is left out.

// ScrubAnswers has answers scrubbed. It belongs before the first query.
func (f *Forward) ScrubAnswers() { f.scrubs = true }

// LeaveOut leaves out the lower-case name in wire form and all names below it, if f is for a zone above it, and
// reports whether it is. It belongs before the first query.
func (f *Forward) LeaveOut(name []byte) bool {
	if len(name) <= len(f.zones.From) || !f.zones.Cover(name) {
		return false
	}
	f.zones.Except(name)
	return true
}

// ReferBy has r told of upstreams' replies, and refer clients that do not desire recursion where it can. It belongs before
// the first query, and goes with ScrubAnswers.
func (f *Forward) ReferBy(r advice.Referrer) { f.referrer = r }

// refer answers a query that does not desire recursion with a referral, and reports whether there is one.
func (f *Forward) refer(w dns.ResponseWriter, r *dns.Msg) (done bool, err error) {
	a, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return false, nil // an upstream may know what to make of it
	}
	defer a.Free()
	if !f.referrer.Refer(&a.Reply, &a.Query) {
		return false, nil
	}
	_, err = a.Write()
	return true, err
}

// scrub is what is left of an upstream's reply; the referrer sees all of one that answers.
func (f *Forward) scrub(reply []byte) []byte {
	p, err := rrset.Parse(reply)
	if err != nil {
		return reply
	}
	if f.referrer != nil && answers(p) {
		f.referrer.Told(p)
	}
	return scrubbed(p, reply)
}

// scrubbed is reply, which reads as p, without records in its answer section that do not belong to the answer; reply itself
// if there are none. One that only refers is a failure.
func scrubbed(p *rrset.Message, reply []byte) []byte {
	switch {
	case p.Type == rrset.TypeANY:
		return reply
	case len(p.Section[rrset.Answer]) == 0:
		if refers(p) {
			return refusing(reply)
		}
		return reply
	}
	names, sets := chain(p), p.Section[rrset.Answer]
	strays := false
	for _, s := range sets {
		strays = strays || !names[s.Name]
	}
	if !strays {
		return reply
	}
	m := new(dns.Msg)
	if wire.UnpackInto(m, reply) != nil {
		return reply
	}
	kept := m.Answer[:0]
	for _, rr := range m.Answer {
		if name, err := rrset.Name(rr.Header().Name); err == nil && names[name] {
			kept = append(kept, rr)
		}
	}
	m.Answer, m.Compress = kept, true
	if b, err := m.Pack(); err == nil {
		return b
	}
	return reply
}

// answers reports whether m, a reply to one who desires recursion, has an answer: the upstream is not believed in what stands
// in others.
func answers(m *rrset.Message) bool {
	return m.Flags&wire.FlagRD != 0 && (m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError) &&
		(len(m.Section[rrset.Answer]) > 0 || !refers(m))
}

// refers reports whether m only tells whom else to ask, though recursion was desired: the upstream is no resolver, or none
// for us.
func refers(m *rrset.Message) bool {
	ns := false
	for _, s := range m.Section[rrset.Authority] {
		if s.Type == wire.TypeSOA {
			return false
		}
		ns = ns || s.Type == wire.TypeNS
	}
	return ns && m.Rcode == dns.RcodeSuccess && !m.AA() && m.Flags&wire.FlagRD != 0
}

// refusing is reply as one that tells SERVFAIL, in place.
func refusing(reply []byte) []byte {
	reply = reply[:wire.HeaderLen+wire.NameLen(reply[wire.HeaderLen:])+4]
	clear(reply[6:wire.HeaderLen])
	reply[3] = reply[3]&^0xF | wire.ServFail
	return reply
}

// chain is the owners that belong to the answer: the name that was asked, and those that aliases lead to.
func chain(m *rrset.Message) map[string]bool {
	names, next := map[string]bool{}, m.Name
	for !names[next] {
		name := next
		names[name] = true
		for _, s := range m.Section[rrset.Answer] {
			switch {
			case s.Type == wire.TypeCNAME && s.Name == name:
				next = rrset.Target(s.First())
			case s.Type == wire.TypeDNAME && len(s.Name) < len(name) && rrset.Below(name, s.Name):
				names[s.Name] = true
			}
		}
	}
	return names
}
