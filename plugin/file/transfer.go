package file

import (
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// batch is how many records Transfer gives at once.
const batch = 256

// Transfer gives the records of the zone for a transfer (RFC 5936): the SOA record, all others, the SOA record again. If
// serial is not 0, and not older than the zone's (RFC 1982), it is the SOA record alone. The channel has to be read
// until it is closed. It is an error if there is no data to transfer. Zone.Current and zone.Zone.Transfer give the
// same without a dns.RR for each record.
func (z *Zone) Transfer(serial uint32) (<-chan []dns.RR, error) {
	v, expired := z.version()
	if v == nil || expired {
		return nil, errNoSOA
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
