package validate

import (
	"crypto/sha256"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// kind is what a name of the chain is.
type kind uint8

const (
	plain   kind = iota // no zone begins here
	nothing             // nor below
	cut                 // a signed zone, whose keys are not known yet
	zone                // a signed zone with its keys
	ended               // what the Finding says holds from here on downward
)

// Node is what is known of a name on the way from an anchor down. It does not
// change.
type Node struct {
	kind
	Finding
	ds      []delegation // of a cut
	anchors []string     // DNSKEY RDATA that is believed, of a cut
	keys    []*key       // of a zone, also such as may not sign
	id      Sum          // over the keys
	since   time.Time    // when it was found out
	// Expires is when it has to be found out anew: the least of the TTLs and the ends
	// of the signatures that it rests on.
	Expires time.Time
}

// How long what is found out of a chain is kept: at most, and if nobody
// answered (RFC 9520 §3.2).
const (
	longestKept = 24 * time.Hour
	shortly     = 5 * time.Second
)

// keep notes what is known of a name until the least of the RRsets' ends.
func (t *Task) keep(name string, n *Node, until time.Time) *Node {
	if most := t.now.Add(longestKept); until.IsZero() || until.After(most) {
		until = most
	}
	if n.kind == ended && n.Status == Bogus {
		until = t.now.Add(t.conf.BogusTTL)
		if n.Code == dns.ExtendedErrorCodeDNSSECIndeterminate { // nobody answered
			until = t.now.Add(min(shortly, t.conf.BogusTTL))
		}
	}
	n.since, n.Expires = t.now, until
	t.found(name, n)
	if t.conf.Memory != nil && n.kind != cut && t.over == "" {
		t.conf.Memory.KeepNode(name, n)
	}
	return n
}

func (t *Task) node(name string) *Node {
	for i := range t.nodes {
		if t.nodes[i].name == name {
			return t.nodes[i].Node
		}
	}
	if t.conf.Memory != nil {
		if n := t.conf.Memory.Node(name, t.now); n != nil {
			t.found(name, n)
			return n
		}
	}
	return nil
}

// named is a Node and its name. A Task has few, so they are looked through.
type named struct {
	name string
	*Node
}

// found notes what is known of a name now.
func (t *Task) found(name string, n *Node) {
	for i := range t.nodes {
		if t.nodes[i].name == name {
			t.nodes[i].Node = n
			return
		}
	}
	t.nodes = append(t.nodes, named{name, n})
}

// end of a Checked or a DS, in time.
func (t *Task) until(s *rrset.Set, c Checked) time.Time {
	return t.now.Add(time.Duration(min(s.TTL, c.TTL)) * time.Second)
}

// Anchors above others do not matter: the closest one at or above a name begins its
// chain (RFC 4035 §5). A name is no cut if its zone says so; only the zone's own word
// makes it an unsigned one. What could not be asked for makes everything below bogus
// and not insecure, else who can drop packets could take signatures away.

// walk finds the zone that a name lies in: from the closest anchor above down,
// one label after the other. It reports false if something is missing. The
// Node is of kind zone, and secure, or tells why there is none.
func (t *Task) walk(target string) (name string, n *Node, ok bool) {
	if n := t.exempt(target); n != nil {
		return target, n, true
	}
	name = target
	for t.conf.Anchors[name] == nil {
		if name == rrset.Root {
			return name, &Node{kind: ended, Finding: Finding{Status: Indeterminate}}, true
		}
		name = rrset.Parent(name)
	}
	if n = t.anchored(name); n == nil {
		return name, nil, false
	}
	for i := rrset.Labels(name) + 1; n.kind == zone && i <= rrset.Labels(target); i++ {
		next := rrset.Last(target, i)
		below := t.node(next)
		if below == nil {
			if below = t.descend(name, n, next); below == nil {
				return name, nil, false
			}
		}
		if below.kind == cut {
			if below = t.enter(next, below); below == nil {
				return name, nil, false
			}
		}
		switch below.kind {
		case nothing:
			return name, n, true
		case zone, ended:
			name, n = next, below
		}
	}
	return name, n, true
}

// superseded reports whether an anchor was configured at a name, and none above: its zone begins a chain of its own, so
// nobody depends on the DS RRset that its parent may have.
func (t *Task) superseded(name string) bool {
	if a := t.conf.Anchors[name]; a == nil || a.Builtin || name == rrset.Root {
		return false
	}
	for name != rrset.Root {
		name = rrset.Parent(name)
		if a := t.conf.Anchors[name]; a != nil && !a.Builtin {
			return false
		}
	}
	return true
}

// exempt is the end of the chain for a name at or below a negative trust
// anchor, or of a zone that stays inside with no anchor closer; nil if there is
// none. It is asked of the names of data, too: their signer may lie above.
func (t *Task) exempt(name string) *Node {
	for closer := false; ; name = rrset.Parent(name) {
		closer = closer || t.conf.Anchors[name] != nil
		if !closer && t.conf.Inside != nil && t.conf.Inside(name) {
			return &Node{kind: ended, Finding: Finding{Status: Insecure, Zone: name}}
		}
		if t.conf.Negative != nil && t.conf.Negative(name, t.now) {
			return &Node{kind: ended, Finding: Finding{Status: Insecure, Code: negativeAnchor, Told: true, Text: "negative trust anchor", Zone: name}}
		}
		if name == rrset.Root {
			return nil
		}
	}
}

// negativeAnchor is the info code for data below a negative trust anchor (RFC
// 7646).
const negativeAnchor = 33

// anchored is the zone of an anchor, nil if its keys are missing.
func (t *Task) anchored(name string) *Node {
	if n := t.node(name); n != nil && n.kind != plain && n.kind != nothing {
		return n
	}
	a := t.conf.Anchors[name]
	n := &Node{kind: cut, anchors: a.Keys}
	for _, r := range a.DS {
		if d, ok := parseDS(r); ok {
			n.ds = append(n.ds, d)
		}
	}
	return t.enter(name, n)
}

// got is the reply to a question of the chain; if it is missing, it is noted,
// and ok is false. A reply that tells nothing is a Finding.
func (t *Task) got(q Question) (m *rrset.Message, f Finding, ok bool) {
	m, ok = t.replies[q]
	switch {
	case !ok:
		t.need(q)
	case m == nil || m.Rcode != wire.Success && m.Rcode != wire.NXDomain:
		return nil, bogus(dns.ExtendedErrorCodeDNSSECIndeterminate, "no "+dns.Type(q.Type).String()+" of "+clip(rrset.Text(q.Name))), true
	}
	return m, f, ok
}

// A DS record that matches a key shows which key it is; that the DNSKEY RRset is signed
// by that key shows that its owner put all the others there. Both are needed.

// enter finds the keys of a zone whose DS records, or anchors, are known: nil
// if they are missing (RFC 4035 §5.2).
func (t *Task) enter(name string, c *Node) *Node {
	m, f, ok := t.got(Question{name, rrset.TypeDNSKEY})
	if !ok {
		return nil
	}
	if m == nil {
		return t.keep(name, &Node{kind: ended, Finding: at(f, name)}, t.now)
	}
	set := find(m.Section[rrset.Answer], name, rrset.TypeDNSKEY)
	if set == nil {
		return t.keep(name, &Node{kind: ended, Finding: at(bogus(dns.ExtendedErrorCodeDNSKEYMissing, "no DNSKEY of "+clip(rrset.Text(name))), name)}, t.now)
	}
	keys := t.keysOf(set)
	trusted, f := t.trusted(name, c, keys)
	if f.Status != Secure {
		return t.keep(name, &Node{kind: ended, Finding: at(f, name)}, t.now.Add(time.Duration(set.TTL)*time.Second))
	}
	id := Sum(sha256.Sum256([]byte(name)))
	for _, k := range trusted {
		id = Sum(sha256.Sum256([]byte(string(id[:]) + k.rdata)))
	}
	got := t.check(set, name, trusted, id)
	if got.Status != Secure {
		return t.keep(name, &Node{kind: ended, Finding: got.Finding}, t.now)
	}
	n := &Node{kind: zone, Finding: Finding{Status: Secure, Zone: name}, id: id}
	for _, k := range keys {
		n.id = Sum(sha256.Sum256([]byte(string(n.id[:]) + k.rdata)))
		n.keys = append(n.keys, k)
	}
	return t.keep(name, n, earlier(c.Expires, t.until(set, got)))
}

func at(f Finding, zone string) Finding {
	f.Zone = zone
	return f
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// The order of the questions asked of a DS reply matters: the RRset itself, then an
// alias in its place, then its denial. What stands in the answer section under another
// name is nothing.

// descend finds out what a name below a zone is by the zone's own word, the DS
// RRset or its denial; nil if that is missing.
func (t *Task) descend(parent string, p *Node, name string) *Node {
	if n := t.told(parent, p, name); n != nil {
		return n
	}
	m, f, ok := t.got(Question{name, rrset.TypeDS})
	if !ok {
		return nil
	}
	if m == nil {
		return t.keep(name, &Node{kind: ended, Finding: at(f, parent)}, t.now)
	}
	answer := m.Section[rrset.Answer]
	if set := find(answer, name, rrset.TypeDS); set != nil {
		return t.byDS(parent, p, name, set)
	}
	if alias := aliasOf(answer, name); alias != nil { // what is an alias is no cut
		got := t.check(alias, parent, p.keys, p.id)
		if got.Status != Secure {
			return t.keep(name, &Node{kind: ended, Finding: got.Finding}, t.now)
		}
		return t.keep(name, &Node{kind: plain}, t.until(alias, got))
	}
	d := t.denials(m, parent, p)
	if d.first.Status == Bogus && d.param.Status == 0 && len(d.nsec)+len(d.nsec3) == 0 {
		return t.keep(name, &Node{kind: ended, Finding: d.first}, t.now)
	}
	k, f := d.atCut(name)
	if k != ended {
		return t.keep(name, &Node{kind: k}, d.until)
	}
	return t.keep(name, &Node{kind: ended, Finding: at(f, parent)}, d.until)
}

// byDS is the node of a name with DS records.
func (t *Task) byDS(parent string, p *Node, name string, set *rrset.Set) *Node {
	got := t.check(set, parent, p.keys, p.id)
	if got.Status == Secure && got.Labels != labelsOf(name) {
		got.Finding = bogus(dns.ExtendedErrorCodeDNSBogus, "DS of a wildcard")
	}
	if got.Status != Secure {
		return t.keep(name, &Node{kind: ended, Finding: at(got.Finding, parent)}, t.now)
	}
	n := &Node{kind: cut}
	set.Each(func(r string) bool {
		if d, ok := parseDS(r); ok {
			n.ds = append(n.ds, d)
		}
		return true
	})
	if ds, f := t.usable(name, n.ds); len(ds) == 0 {
		return t.keep(name, &Node{kind: ended, Finding: at(f, name)}, t.until(set, got))
	}
	return t.keep(name, n, t.until(set, got))
}

// aliasOf is the CNAME RRset of a name, or the DNAME RRset above it; nil if
// there is none. A CNAME that a DNAME made is not signed, so the DNAME counts.
func aliasOf(sets []*rrset.Set, name string) *rrset.Set {
	if s := find(sets, name, wire.TypeCNAME); s != nil && s.Sigs > 0 {
		return s
	}
	for _, s := range sets {
		if s.Type == typeDNAME && s.Name != name && rrset.Below(name, s.Name) {
			return s
		}
	}
	return find(sets, name, wire.TypeCNAME)
}

// Size is about how many octets of memory a Node takes.
func (n *Node) Size() int {
	octets := 300
	for _, k := range n.keys {
		octets += 300 + 2*len(k.rdata)
	}
	return octets
}

// Ages reports whether n is a zone with keys for which more than half of its time is over.
func (n *Node) Ages(now time.Time) bool {
	return n.kind == zone && len(n.keys) > 0 && now.Sub(n.since) >= n.Expires.Sub(now)
}

// Lasts is how long n holds from when it was found out.
func (n *Node) Lasts() time.Duration { return n.Expires.Sub(n.since) }

// Broken reports whether the chain ends at n as something is bogus.
func (n *Node) Broken() bool { return n.kind == ended && n.Status == Bogus }

// blames is the question of the chain whose reply is bogus, of a name whose Node is Broken: its zone's own word is
// about its keys, and that of the zone above about DS records.
func (n *Node) blames(name string) Question {
	if n.Zone == name {
		return Question{name, rrset.TypeDNSKEY}
	}
	return Question{name, rrset.TypeDS}
}
