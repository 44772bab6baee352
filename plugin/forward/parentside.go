package forward

import (
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// DS records of a zone lie at its parent (RFC 4035 §3.1.4.1). Where recurse stands below, it finds the parent, while the
// upstreams of an inner zone know nothing of it.

// LeaveDS leaves the DS records of f's own zone to the next plugin. It belongs before the first query.
func (f *Forward) LeaveDS() { f.parentSide = len(f.zones.From) > 1 }

// ofParent reports whether q asks for the DS records of f's zone.
func (f *Forward) ofParent(q *wire.Query) bool {
	return q.Type() == dns.TypeDS && string(q.Lower()) == string(f.zones.From)
}

// ofParentMsg is ofParent for messages.
func (f *Forward) ofParentMsg(r *dns.Msg) bool {
	if len(r.Question) != 1 || r.Question[0].Qtype != dns.TypeDS {
		return false
	}
	name, err := wire.LowerName(r.Question[0].Name)
	return err == nil && string(name) == string(f.zones.From)
}
