package validate

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// denials is what of a reply's authority section says that something does not
// exist, and is secure.
type denials struct {
	t     *Task
	zone  string
	nsec  []nsec
	nsec3 []nsec3
	sets  []*rrset.Set
	first Finding // of what did not hold; Status is 0 if all did
	param Finding // what is wrong with the NSEC3 parameters; Status is 0 if nothing is
	until time.Time
}

// denials checks the NSEC, NSEC3 and SOA RRsets of a reply that are a zone's.
func (t *Task) denials(m *rrset.Message, zone string, z *Node) *denials {
	d := &denials{t: t, zone: zone}
	if n := t.denying(m); t.over != "" || !t.look(n) {
		return d
	}
	for _, s := range m.Section[rrset.Authority] {
		if !denies(s) {
			continue
		}
		if !rrset.Below(s.Name, zone) || s.Sigs > 0 && signerOf(s) != zone {
			continue
		}
		if s.Type == rrset.TypeNSEC3 && len(d.nsec3) >= t.conf.Budget.NSEC3 {
			t.over = "nsec3_records"
			break
		}
		d.add(s, t.check(s, zone, z.keys, z.id))
	}
	if d.first.Status == 0 && d.param.Status == 0 && len(d.nsec)+len(d.nsec3) == 0 {
		d.first = at(bogus(dns.ExtendedErrorCodeNSECMissing, "no denial from "+clip(rrset.Text(zone))), zone)
	}
	return d
}

// add takes an RRset that was checked. A denial that a wildcard made says
// nothing.
func (d *denials) add(s *rrset.Set, got Checked) {
	if got.Status != Secure {
		d.first = worse(d.first, got.Finding)
		return
	}
	d.sets = append(d.sets, s)
	d.until = earlier(d.until, d.t.until(s, got))
	if got.Labels != labelsOf(s.Name) || s.N != 1 {
		return
	}
	switch s.Type {
	case rrset.TypeNSEC:
		if n, ok := parseNSEC(s, d.zone); ok {
			d.nsec = append(d.nsec, n)
		}
	case rrset.TypeNSEC3:
		if n, ok := parseNSEC3(s, d.zone); ok {
			d.addNSEC3(n)
		}
	}
}

// outcome is what a denial proves.
type outcome uint8

const (
	unproven outcome = iota
	proven
	optedOut // there may be an unsigned delegation (RFC 5155 §6)
	untold   // true or not, whoever signed it would have said the same
)

// A denial that did not hold is remembered as the reason, and used only if nothing else
// proves what is asked.

// Each of these is asked of NSEC and of NSEC3; one of both suffices.

// nodata is whether a name has no RRset of a type.
func (d *denials) nodata(name string, typ uint16) outcome {
	if o := d.nodataNSEC(name, typ); o != unproven {
		return o
	}
	return d.nodataNSEC3(name, typ)
}

// nxdomain is whether a name does not exist, nor a wildcard in its stead.
func (d *denials) nxdomain(name string) outcome {
	if o := d.nxdomainNSEC(name); o != unproven {
		return o
	}
	return d.nxdomainNSEC3(name)
}

// noCloser is whether nothing exists that is closer to a name than the
// wildcard of so many labels that it came from.
func (d *denials) noCloser(name string, labels int) outcome {
	next := rrset.Last(name, labels+1)
	for _, n := range d.nsec {
		if n.covers(name) && !rrset.Below(n.owner, next) && !rrset.Below(n.next, next) {
			return proven
		}
	}
	return d.covered3(next)
}

// Finding is what an outcome means for a reply.
func (d *denials) finding(o outcome, what string) Finding {
	switch {
	case o == proven:
		return Finding{Status: Secure, Zone: d.zone}
	case o == optedOut || o == untold:
		return Finding{Status: Insecure, Zone: d.zone}
	case d.param.Status != 0 && len(d.nsec3) == 0:
		return at(d.param, d.zone)
	case d.first.Status != 0:
		return d.first
	}
	return at(bogus(dns.ExtendedErrorCodeNSECMissing, "no denial of "+clip(what)), d.zone)
}

// atCut tells what a name is that has no DS records: only who may be believed
// that a zone begins there without signatures makes it insecure (RFC 4035
// §5.2, 5155 §8.9).
func (d *denials) atCut(name string) (kind, Finding) {
	insecure := Finding{Status: Insecure}
	for _, n := range d.nsec {
		if n.owner == name {
			if n.has(rrset.TypeDS) || n.has(wire.TypeSOA) {
				break
			}
			if n.has(wire.TypeNS) {
				return ended, insecure
			}
			return plain, insecure
		}
		if n.covers(name) {
			if rrset.Below(n.next, name) {
				return plain, insecure
			}
			return nothing, insecure
		}
	}
	return d.atCut3(name)
}
