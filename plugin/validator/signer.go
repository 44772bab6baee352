package validator

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// While a zone's keys are replaced, its servers may have versions of it that no key has signed in common. What is to be
// proven and the keys that prove it have to be of one version, so they are had from one server, if that can be. Who
// leaves signatures out is not asked first: it does so with keys, too.

// keep keeps a reply, for signer.
func (i *inquiry) keep(q validate.Question, reply *dns.Msg) {
	if i.last == nil {
		i.last = map[validate.Question]*dns.Msg{}
	}
	i.last[q] = reply
}

// signer is the server that has told something which a zone has signed: of the reply, or of DS records of a zone below on
// the way to it. It is not valid if none has.
func (i *inquiry) signer(zone string) (by netip.AddrPort) {
	if by = i.told(i.q, zone); by.IsValid() {
		return by
	}
	for name := i.q.Name; name != zone && name != rrset.Root; name = rrset.Parent(name) {
		if by = i.told(validate.Question{Name: name, Type: dns.TypeDS}, zone); by.IsValid() {
			break
		}
	}
	return by
}

// told is the server that has told what a zone has signed of a reply, not valid if there is none.
func (i *inquiry) told(q validate.Question, zone string) (by netip.AddrPort) {
	signs := func(rr dns.RR) bool {
		g, ok := rr.(*dns.RRSIG)
		if !ok {
			return false
		}
		name, err := rrset.Name(g.SignerName)
		return err == nil && name == zone
	}
	if m := i.last[q]; m != nil && (slices.ContainsFunc(m.Answer, signs) || slices.ContainsFunc(m.Ns, signs)) {
		by = i.sources[q].As(zone)
	}
	return by
}
