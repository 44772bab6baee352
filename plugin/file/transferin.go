package file

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

// For programs that have secondary zones of their own. The secondary plugin does more (incremental transfers, signatures,
// storage); it asks package fetch itself.

// TransferInFunc fetches a zone, and tells t of it.
type TransferInFunc func(z *Zone, t *transfer.Transfer) error

var errNoPrimary = errors.New("there is no primary to transfer from")

// TransferIn fetches the zone from the first of TransferFrom that gives it, answers from it, and has t, which may be nil,
// notify secondaries.
func (z *Zone) TransferIn(t *transfer.Transfer) error { return z.TransferInWithRecords(t, nil) }

// TransferInWithRecords is TransferIn of a zone whose records validate has nothing against; it may be nil.
func (z *Zone) TransferInWithRecords(t *transfer.Transfer, validate func([]dns.RR) error) error {
	err := errNoPrimary
	for _, primary := range z.TransferFrom {
		var v *zone.Zone
		c := fetch.Client{Primary: primary, Limits: TransferLimits()}
		v, err = c.Zone(context.Background(), z.name, nil, func(format string, args ...any) {
			flog.Warningf("Zone %s from %s: %s", z.origin, primary, fmt.Sprintf(format, args...))
		})
		if err == nil && validate != nil {
			err = validate(appendAll(nil, v))
		}
		if err == nil {
			z.Replace(v)
			flog.Infof("Transferred: %s from %s", z.origin, primary)
			t.NotifyLater(z.origin)
			return nil
		}
		flog.Errorf("Failed to transfer `%s' from %q: %v", z.origin, primary, err)
	}
	return fmt.Errorf("transfer of %s: %w", z.origin, err)
}

// appendAll appends all records of a zone.
func appendAll(rrs []dns.RR, v *zone.Zone) []dns.RR {
	w := v.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		if rr, err := rec.RR(); err == nil {
			rrs = append(rrs, rr)
		}
	}
	return rrs
}

// Update keeps the zone as its primaries have it, until something comes from shutdown or it is closed. See UpdateWithTransfer.
func (z *Zone) Update(shutdown chan bool, t *transfer.Transfer) error {
	return z.UpdateWithTransfer(shutdown, t, (*Zone).TransferIn)
}

// UpdateWithTransfer asks the primaries for their serial as often as the SOA record tells, and calls transferIn if it is newer
// than ours. If none answers for too long, the zone expires. It returns when something comes from shutdown or that is closed.
func (z *Zone) UpdateWithTransfer(shutdown chan bool, t *transfer.Transfer, transferIn TransferInFunc) error {
	var plan fetch.Plan
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-shutdown:
			return nil
		case <-timer.C:
		}
		if err := z.refresh(t, transferIn); err != nil {
			if z.Current() != nil {
				flog.Warningf("Failed refresh check %v", err)
			}
			plan.Failed()
		} else if v := z.Current(); v != nil {
			plan.Good(v, time.Now())
			z.SetExpired(false)
		}
		wait := plan.Wait(rand.N[time.Duration])
		if e := plan.Expires(); !e.IsZero() {
			if left := time.Until(e); left <= 0 {
				z.SetExpired(true)
			} else {
				wait = min(wait, left)
			}
		}
		timer.Reset(wait)
	}
}

// refresh fetches the zone if a primary has a newer one. It is an error if no primary could be asked.
func (z *Zone) refresh(t *transfer.Transfer, transferIn TransferInFunc) error {
	v := z.Current()
	if v == nil {
		return transferIn(z, t)
	}
	err := errNoPrimary
	for _, primary := range z.TransferFrom {
		var serial uint32
		c := fetch.Client{Primary: primary}
		if serial, err = c.Serial(context.Background(), z.name); err != nil {
			continue
		}
		if newer(serial, v.Serial()) {
			return transferIn(z, t)
		}
		return nil
	}
	return err
}
