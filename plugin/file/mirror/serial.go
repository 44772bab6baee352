package mirror

import (
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

// Providers never raise the serial of a zone, or only for some ways of changing it. A secondary would take the first version
// that it gets for the last one. So where a zone is transferred its serial is one of ours, the time of the change. One that the
// provider has ahead of that is left: whoever numbers by days does so by hand.

// announce has the zones that x transfers numbered, and x told of all that changes in them, from now on.
func (m *Mirror) announce(x *transfer.Transfer, now time.Time) error {
	if err := m.number(x.Has, now); err != nil {
		return err
	}
	for _, group := range m.byName {
		group[0].zone.Announce(x)
	}
	return nil
}

// number has the zones that are transferred numbered from now on.
func (m *Mirror) number(transferred func(zone string) bool, now time.Time) error {
	for name, group := range m.byName {
		if z := group[0]; transferred(name) { // of several the first one is
			if err := z.number(now); err != nil {
				return err
			}
		}
	}
	return nil
}

// number gives z, which has been read, the first serial of ours.
func (z *hosted) number(now time.Time) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.numbered = true
	v := z.zone.Current()
	for rec := range v.RecordsOf(v.Origin(), v.Apex().Set(dns.TypeSOA)) {
		rr, err := rec.RR()
		if err != nil {
			return err
		}
		soa, ok := rr.(*dns.SOA)
		if !ok || !numbers(soa, now) {
			return nil
		}
		e := v.Edit(z.warnings.warn)
		if err := e.RemoveRR(soa); err != nil {
			return err
		}
		if err := e.AddRR(withSerial(soa, uint32(now.Unix()))); err != nil {
			return err
		}
		if v, err = e.Build(); err != nil {
			return err
		}
		z.zone.Replace(v)
		return nil
	}
	return nil
}

// numbers reports whether a serial of ours goes in the place of that of soa.
func numbers(soa *dns.SOA, now time.Time) bool { return newer(uint32(now.Unix()), soa.Serial) }

// newer compares serials (RFC 1982 §3.2).
func newer(a, b uint32) bool { return int32(a-b) > 0 }

// next is the serial of a change.
func next(old uint32, now time.Time) uint32 {
	if t := uint32(now.Unix()); newer(t, old) {
		return t
	}
	return old + 1
}

func withSerial(soa *dns.SOA, serial uint32) *dns.SOA {
	s := *soa
	s.Serial = serial
	return &s
}

// version makes the version of z that has the records, or returns old if that is the same.
func (z *hosted) version(origin []byte, records []dns.RR, old *zone.Zone, now time.Time) (*zone.Zone, error) {
	at := -1
	if z.numbered && old != nil {
		at = slices.IndexFunc(records, func(rr dns.RR) bool {
			soa, ok := rr.(*dns.SOA)
			return ok && strings.EqualFold(soa.Hdr.Name, z.Zone) && numbers(soa, now)
		})
	}
	if at >= 0 {
		records[at] = withSerial(records[at].(*dns.SOA), old.Serial())
	}
	v, err := z.build(origin, records)
	switch {
	case err != nil:
		return nil, err
	case old != nil && identical(old, v):
		return old, nil
	case at < 0:
		return v, nil
	}
	records[at] = withSerial(records[at].(*dns.SOA), next(old.Serial(), now))
	return z.build(origin, records)
}

func (z *hosted) build(origin []byte, records []dns.RR) (*zone.Zone, error) {
	b := zone.NewBuilder(origin, z.warnings.warn)
	for _, rr := range records {
		if err := b.AddRR(rr); err != nil {
			z.warnings.warn("Failed to process record %q of %s: %v", rr.String(), z.Zone, err)
		}
	}
	return b.Build()
}
