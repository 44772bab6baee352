package store

import (
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// Host is a name server of a delegation, with its glue.
type Host struct {
	Name  string
	Addrs []netip.Addr
	Port  uint16 // 0 is that of all servers
}

// At is the server of the host at an address; port is that of all servers.
func (h Host) At(a netip.Addr, port uint16) netip.AddrPort {
	if h.Port != 0 {
		port = h.Port
	}
	return netip.AddrPortFrom(a, port)
}

// Delegation is a zone cut as its parent tells it (RFC 1034 §4.3.2 step 3b), and the zone's servers.
//
// It lives as long as the parent's NS set, and never longer than the cut that it hangs on: a zone whose delegation
// was taken away ends with it, however often its servers are asked (ghost domains).
type Delegation struct {
	Zone    string
	Hosts   []Host
	DS      *rrset.Set   // nil if there was none in the referral
	Denials []*rrset.Set // that there is no DS
	Told    Time         // when the parent did, or was asked once more
	Expires Time
	Holds   Time   // until then DS and Denials do: they end with their own TTLs (RFC 4035 §5.3.3), or with the rest
	Fixed   bool   // of the configuration: a stub, or the hints
	Child   []Host // names of the zone's own NS set, tried once all else failed
}

// Delegations is delegations by zone.
type Delegations struct {
	shelf shelf[string, *Delegation]
}

// NewDelegations is delegations of so many octets.
func NewDelegations(octets int64) *Delegations {
	s := &Delegations{}
	s.init(octets)
	return s
}

func (s *Delegations) init(octets int64) {
	s.shelf.init(octets, hashOf, func(_ string, d *Delegation) int64 { return d.size() })
}

// Closest is the deepest delegation at or above name that lives, nil if there is none.
func (s *Delegations) Closest(name string, now Time) *Delegation {
	for {
		if d, ok := s.shelf.get(name); ok && d.Expires > now {
			return d
		}
		if name == rrset.Root {
			return nil
		}
		name = rrset.Parent(name)
	}
}

// Get is the delegation of a zone, nil if there is none that lives.
func (s *Delegations) Get(zone string, now Time) *Delegation {
	if d, ok := s.shelf.get(zone); ok && d.Expires > now {
		return d
	}
	return nil
}

// Put keeps d. One of the same zone that lives is replaced, but its life is not made longer: the parent is asked anew
// when that ends.
func (s *Delegations) Put(d *Delegation, now Time) {
	if d.Expires <= now {
		return
	}
	s.shelf.update(d.Zone, func(old *Delegation, ok bool) (*Delegation, bool) {
		if ok && old.Expires > now && old.Expires < d.Expires {
			c := *d
			c.Expires = old.Expires
			d = &c
		}
		return d, true
	})
}

func (d *Delegation) size() int64 {
	n := 200 + len(d.Zone)
	for _, h := range append(d.Hosts[:len(d.Hosts):len(d.Hosts)], d.Child...) {
		n += 48 + len(h.Name) + 24*len(h.Addrs)
	}
	for _, s := range append([]*rrset.Set{d.DS}, d.Denials...) {
		if s != nil {
			n += s.Size()
		}
	}
	return int64(n)
}

// Forget forgets the delegation of a zone, or with below those below it, too.
func (s *Delegations) Forget(zone string, below bool) int {
	return s.shelf.removeIf(func(z string, _ *Delegation) bool { return z == zone || below && rrset.Below(z, zone) })
}

// Remove forgets the delegation of a zone, and of none below: those have an end of their own.
func (s *Delegations) Remove(zone string) { s.shelf.remove(zone) }

// Total is the number of delegations and their octets.
func (s *Delegations) Total() (n int, octets int64) { return s.shelf.total() }
