// Package catalog reads catalog zones (RFC 9432): zones that list other zones, so that secondaries know what to
// transfer.
//
//	version.CATALOG             TXT  "2"
//	ID.zones.CATALOG            PTR  the member zone
//	group.ID.zones.CATALOG      TXT  a group of zones to be handled alike
//	coo.ID.zones.CATALOG        PTR  the catalog that may take the member over (change of ownership)
//
// The package is pure. Start at Parse.
package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Version is the version of catalog zones that Parse understands.
const Version = "2"

// Catalog is what a catalog zone says. Names are fully qualified and in lower case.
type Catalog struct {
	// Origin is the apex of the catalog zone.
	Origin string
	// Members are sorted by ID. No two have the same ID or zone.
	Members []Member
}

// Member is one zone that is listed in a catalog.
type Member struct {
	// ID is the label under which the catalog lists the zone. A member whose ID changes is another one: its state is
	// to be reset (RFC 9432 §5).
	ID string
	// Zone is the member zone's apex.
	Zone string
	// Groups are the values of the group property, sorted, as they are written in a zone file but without quotes.
	Groups []string
	// ChangeOfOwnership is the catalog that may take the zone over, "" if none is named.
	ChangeOfOwnership string
}

// Parse reads the catalog with the apex origin from all records of the zone, in any order, as a transfer or a zone
// file gives them. A record that stands there twice counts once. Records that mean nothing to version 2, and those
// outside the zone, are ignored.
//
// A broken catalog must not be used at all (RFC 9432 §5.1), so there is an error or a Catalog, never both. A catalog
// is broken if it has records of another class than IN; no SOA or NS record at the apex; not exactly one version, or
// another one; a member with none or several zones, or several new owners; or a zone under two IDs.
func Parse(origin string, rrs []dns.RR) (*Catalog, error) {
	r := reader{origin: dns.CanonicalName(origin), nodes: make(map[string]*node)}
	for _, rr := range rrs {
		if err := r.read(rr); err != nil {
			return nil, err
		}
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	members, err := r.members()
	if err != nil {
		return nil, err
	}
	return &Catalog{Origin: r.origin, Members: members}, nil
}

// members makes the Members of the nodes, in the order of their IDs.
func (r *reader) members() ([]Member, error) {
	members := make([]Member, 0, len(r.nodes))
	for _, id := range slices.Sorted(maps.Keys(r.nodes)) {
		n := r.nodes[id]
		zones, owners := distinct(n.zones), distinct(n.owners)
		if len(zones) != 1 {
			return nil, fmt.Errorf("catalog member %s must have exactly one PTR record", r.owner(id))
		}
		if len(owners) > 1 {
			return nil, fmt.Errorf("catalog member %s must have at most one coo PTR record", r.owner(id))
		}
		m := Member{ID: id, Zone: zones[0], Groups: distinct(n.groups)}
		if len(owners) == 1 {
			m.ChangeOfOwnership = owners[0]
		}
		members = append(members, m)
	}
	return members, unique(members)
}

// unique says which zone is listed twice, if one is.
func unique(members []Member) error {
	ids := make(map[string]string, len(members))
	for _, m := range members {
		if other, ok := ids[m.Zone]; ok {
			return fmt.Errorf("catalog member zone %s is listed by both %s and %s", m.Zone, other, m.ID)
		}
		ids[m.Zone] = m.ID
	}
	return nil
}

// owner returns the name that has the PTR record of the member id.
func (r *reader) owner(id string) string { return id + ".zones." + r.origin }

// text joins the strings of a TXT record.
func text(txt *dns.TXT) string { return strings.Join(txt.Txt, "") }

// distinct sorts list and leaves out repetitions. It changes list.
func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
