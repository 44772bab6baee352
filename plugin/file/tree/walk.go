package tree

import (
	"github.com/coredns/coredns/plugin/file/rrutil"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Walk calls fn for each name in canonical order, with its records by type, until fn returns an error, which
// Walk returns then. fn may change the tree: names that it adds are not walked, records are as they are when their turn
// comes.
func (t *Tree) Walk(fn func(*Elem, map[uint16][]dns.RR) error) error {
	for _, e := range t.All() {
		if err := fn(e, e.snapshot()); err != nil {
			return err
		}
	}
	return nil
}

// AuthWalk is Walk that also tells whether the zone is authoritative for the name: not so below a zone cut,
// a name with NS records.
func (t *Tree) AuthWalk(fn func(e *Elem, sets map[uint16][]dns.RR, auth bool) error) error {
	var cut []byte
	return t.Walk(func(e *Elem, sets map[uint16][]dns.RR) error {
		auth := cut == nil || !wire.Below(e.key, cut)
		if auth && len(sets[dns.TypeNS]) > 0 {
			cut = e.key
		}
		return fn(e, sets, auth)
	})
}

// Glue is the addresses of the name servers of NS records, as far as the tree has them and they are in the domain that is
// delegated; with do their signatures, too.
func (t *Tree) Glue(nsrrs []dns.RR, do bool) []dns.RR {
	var glue []dns.RR
	for _, rr := range nsrrs {
		ns, ok := rr.(*dns.NS)
		if !ok || !dns.IsSubDomain(ns.Hdr.Name, ns.Ns) {
			continue
		}
		e, ok := t.Search(ns.Ns)
		if !ok {
			continue
		}
		for _, typ := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
			glue = append(glue, e.Type(typ)...)
			if do {
				glue = append(glue, rrutil.SubTypeSignature(e.Type(dns.TypeRRSIG), typ)...)
			}
		}
	}
	return glue
}
