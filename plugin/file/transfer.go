package file

import (
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

// Transfer implements transfer.Transferer.
func (f File) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	z := f.exactly(name)
	if z == nil {
		return nil, transfer.ErrNotAuthoritative
	}
	return z.Transfer(serial)
}

// Version implements transfer.Source.
func (f File) Version(name string) (*zone.Zone, error) {
	z := f.exactly(name)
	if z == nil {
		return nil, transfer.ErrNotAuthoritative
	}
	return z.Sendable()
}

// exactly is the zone of that name, nil if it is not known.
func (f *File) exactly(name string) *Zone {
	if f.ZoneLookupFunc == nil {
		return f.Zones.Z[name]
	}
	if found, z, ok := f.ZoneLookupFunc(name); ok && found == name {
		return z
	}
	return nil
}

// Sendable is the version of the zone that may be transferred, an error if there is none, or it is too old.
func (z *Zone) Sendable() (*zone.Zone, error) {
	v, expired := z.version()
	if v == nil || expired {
		return nil, errNoSOA
	}
	return v, nil
}

// Announce has t told of each version that the zone is replaced by from now on, and its secondaries notified of the one
// that is there. The function returned ends that.
func (z *Zone) Announce(t *transfer.Transfer) (stop func()) {
	if t == nil {
		return func() {}
	}
	if v := z.Current(); v != nil {
		t.Changed(z.origin, nil, v)
	}
	return z.OnReplace(func(old, now *zone.Zone) { t.Changed(z.origin, old, now) })
}

// batch is how many records Transfer gives at once.
const batch = 256

// Transfer gives the records of the zone for a transfer (RFC 5936): the SOA record, all others, the SOA record again. If
// serial is not 0, and not older than the zone's (RFC 1982), it is the SOA record alone. The channel has to be read
// until it is closed. It is an error if there is no data to transfer. Zone.Current and zone.Zone.Transfer give the
// same without a dns.RR for each record.
func (z *Zone) Transfer(serial uint32) (<-chan []dns.RR, error) {
	v, err := z.Sendable()
	if err != nil {
		return nil, err
	}
	ch := make(chan []dns.RR)
	go func() {
		defer close(ch)
		if serial != 0 && !newer(v.Serial(), serial) {
			ch <- appendRRs(nil, v, v.Origin(), v.Apex().Set(dns.TypeSOA))
			return
		}
		sendAll(ch, v.Transfer())
	}()
	return ch, nil
}

// newer reports whether serial a is newer than b.
func newer(a, b uint32) bool { return a != b && a-b <= MaxSerialIncrement }

// sendAll sends the records of a walk. Those that github.com/miekg/dns cannot read are left out.
func sendAll(ch chan<- []dns.RR, w *zone.Walk) {
	rrs := make([]dns.RR, 0, batch)
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			flog.Warningf("Transfer: %v", err)
			continue
		}
		if rrs = append(rrs, rr); len(rrs) == batch {
			ch <- rrs
			rrs = make([]dns.RR, 0, batch)
		}
	}
	if len(rrs) > 0 {
		ch <- rrs
	}
}
