package catalog

import (
	"fmt"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
)

// reader collects what the records of one catalog say, whatever their order.
type reader struct {
	origin   string
	hasSOA   bool
	hasNS    bool
	versions []string
	nodes    map[string]*node // by ID
}

// node is what stands at and below one ID, with repetitions.
type node struct {
	zones  []string
	owners []string
	groups []string
}

// read takes one record in.
func (r *reader) read(rr dns.RR) error {
	h := rr.Header()
	if h.Class != dns.ClassINET {
		return fmt.Errorf("catalog zone %s has a record of class %s, not IN: %s", r.origin, dns.Class(h.Class), h.Name)
	}
	name := dns.CanonicalName(h.Name)
	if name == r.origin {
		r.hasSOA = r.hasSOA || h.Rrtype == dns.TypeSOA
		r.hasNS = r.hasNS || h.Rrtype == dns.TypeNS
		return nil
	}
	if !dns.IsSubDomain(r.origin, name) {
		return nil
	}
	below, err := dnsutil.TrimZone(name, r.origin)
	if err != nil {
		return err
	}
	if below == "version" {
		if txt, ok := rr.(*dns.TXT); ok {
			r.versions = append(r.versions, text(txt))
		}
		return nil
	}
	r.readMember(dns.SplitDomainName(below), rr)
	return nil
}

// readMember takes in a record at [PROPERTY, ID, "zones"] or [ID, "zones"].
func (r *reader) readMember(labels []string, rr dns.RR) {
	if len(labels) < 2 || len(labels) > 3 || labels[len(labels)-1] != "zones" {
		return
	}
	id, property := labels[len(labels)-2], ""
	if len(labels) == 3 {
		property = labels[0]
	}
	switch rr := rr.(type) {
	case *dns.PTR:
		target := dns.CanonicalName(rr.Ptr)
		switch property {
		case "":
			n := r.node(id)
			n.zones = append(n.zones, target)
		case "coo":
			n := r.node(id)
			n.owners = append(n.owners, target)
		}
	case *dns.TXT:
		if property == "group" {
			n := r.node(id)
			n.groups = append(n.groups, text(rr))
		}
	}
}

// node returns the node of id, a new one if there is none.
func (r *reader) node(id string) *node {
	n := r.nodes[id]
	if n == nil {
		n = new(node)
		r.nodes[id] = n
	}
	return n
}

// check looks at what a catalog must have apart from members (RFC 9432 §4.1, §4.2.1).
func (r *reader) check() error {
	versions := distinct(r.versions)
	switch {
	case !r.hasSOA:
		return fmt.Errorf("catalog zone %s has no SOA record", r.origin)
	case !r.hasNS:
		return fmt.Errorf("catalog zone %s has no NS record", r.origin)
	case len(versions) != 1:
		return fmt.Errorf("catalog zone %s must have exactly one version TXT record", r.origin)
	case versions[0] != Version:
		return fmt.Errorf("catalog zone %s has unsupported version %q", r.origin, versions[0])
	}
	return nil
}
