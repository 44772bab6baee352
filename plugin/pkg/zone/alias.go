package zone

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Aliases, CNAME and DNAME records, are followed as far as the zone has what they lead to.

// chase follows aliases until they lead to something else, and ends the reply but for External.
func (a *Answerer) chase(r Result) Result {
	for r == follow {
		a.names = append(a.names, a.name)
		switch {
		case !wire.Below(a.Target, a.z.origin):
			r = External
		case a.circle():
			r = Hit // what there is of it
		case len(a.names) == maxAliases:
			r = Broken
		default:
			r = a.lookTarget()
		}
	}
	if r != External {
		a.finish(r)
	}
	return r
}

// lookTarget looks up where an alias leads, unless the zone has nothing there: no records at exactly this name, nor a
// cut or a DNAME above it. Somebody else may, another zone of the server that lies below this one, for example. A
// wildcard stands back for these, too.
func (a *Answerer) lookTarget() Result {
	m := a.z.Find(a.Target)
	if !a.alone && a.z.lacks(m) {
		return External
	}
	a.name = a.Target
	return a.found(m)
}

// Alone goes on where Answer ended with External, with what the zone itself has. The reply is complete then.
func (a *Answerer) Alone() Result {
	a.alone = true
	r := External
	if wire.Below(a.Target, a.z.origin) {
		r = a.chase(a.lookTarget())
	}
	if r == External {
		r = Hit // the aliases, as far as they are known
		a.finish(r)
	}
	return r
}

// Way is the names that were looked up and are aliases, in their order. They hold until the next question.
func (a *Answerer) Way() [][]byte { return a.names }

// Passed reports whether the answer has the CNAME or DNAME record of a lower name.
func (a *Answerer) Passed(name []byte, typ uint16) bool {
	is := func(passed []byte) bool { return string(passed) == string(name) }
	switch typ {
	case wire.TypeCNAME:
		return slices.ContainsFunc(a.names, is)
	case wire.TypeDNAME:
		return slices.ContainsFunc(a.dnames, func(n Node) bool { return is(n.name(a.z)) })
	}
	return false
}

// room is memory for the next target.
func (a *Answerer) room() []byte { return a.buf[len(a.names)][:0] }

// circle reports whether the alias leads to a name that was looked up already.
func (a *Answerer) circle() bool {
	for _, name := range a.names {
		if string(name) == string(a.Target) {
			return true
		}
	}
	return false
}

// alias answers with a node's CNAME record, to be followed.
func (a *Answerer) alias(n Node) Result {
	set := n.Set(wire.TypeCNAME)
	a.put(wire.Answer, a.owner(), set)
	a.Target = set.Records().AppendRData(a.room(), a.z.origin)
	return follow
}

// substitute answers with a DNAME and the CNAME that it makes (RFC 6672 §3.2).
func (a *Answerer) substitute(n Node) Result {
	set := n.Set(wire.TypeDNAME)
	if !a.substituted(n) {
		a.put(wire.Answer, a.nodeOwner(n), set)
	}
	above := len(a.name) - len(n.prefix()) - len(a.z.origin)
	r := set.Records()
	if above+r.plain() > wire.MaxName {
		return TooLong
	}
	target := r.AppendRData(append(a.room(), a.name[:above]...), a.z.origin)
	wire.Lower(target, target)
	if string(target) == string(a.name) {
		return Broken
	}
	if o := a.owner(); a.whole {
		a.w.Whole(wire.Answer, o, wire.TypeCNAME, r.TTL(), target)
	} else {
		a.w.TargetOf(wire.Answer, o, wire.TypeCNAME, r.TTL(), target)
	}
	if a.qtype == wire.TypeCNAME || a.qtype == wire.TypeANY {
		return Hit
	}
	a.Target = target
	return follow
}

// substituted reports whether a DNAME is in the answer already, and notes that it is now.
func (a *Answerer) substituted(n Node) bool {
	for _, d := range a.dnames {
		if &d[0] == &n[0] {
			return true
		}
	}
	a.dnames = append(a.dnames, n)
	return false
}
