package iterate

import "github.com/coredns/coredns/plugin/pkg/resolver/rrset"

// This file has a copy of the root zone that lies here answer in place of the root's servers (RFC
// 8806). It serves referrals and what the root says of names below it; what is asked of the root
// itself, its servers are asked. The exception is its keys, when the first server that was asked for
// them is of no use: a chain begins with them, and with the servers gone nothing else in the copy
// could be validated.

// hasRoot reports whether the copy can take the task from the root on.
func (t *task) hasRoot() bool {
	c := t.run.conf
	return c.LocalRoot != nil && (t.name != rrset.Root || t.q.Type == rrset.TypeDNSKEY) && !t.doubts() && c.Stubs[rrset.Root] == nil && c.LocalRoot.Has()
}

// local has the copy answer, and reports whether it did. What it tells counts like a reply of a
// server, but costs nothing of the budget. Who doubts what it told asks the servers.
func (t *task) local() bool {
	if t.cut.Zone != rrset.Root || !t.hasRoot() || t.here.q.Name == rrset.Root && (t.here.q.Type != rrset.TypeDNSKEY || t.here.count == 0) {
		return false
	}
	m := t.run.conf.LocalRoot.Reply(t.here.q.Name, t.here.q.Type)
	if m == nil {
		return false
	}
	rd := read(m, rrset.Root, t.here.q, t.run.conf)
	if rd.soft || rd.kind == lame || rd.kind == refused {
		return false
	}
	t.tailored = false
	t.take(rd, nil)
	return true
}
