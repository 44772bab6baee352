package sign

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

const (
	oldAge = 6 * 24 * time.Hour // signatures of which the inception is longer ago are made anew
	left   = 7 * 24 * time.Hour // and those that count for less time yet
	begin  = 100                // records of the signed file that are looked at; the SOA record's signatures are among them
)

// facts is what the begin of a signed file says.
type facts struct {
	sigs   []*dns.RRSIG // of the SOA record
	nsec3  bool
	zonemd bool
}

// due says why the zone has to be signed now, "" if it need not be.
func (s *Signer) due(now time.Time) string {
	signed, err := os.Open(s.signedFile())
	if err != nil {
		return err.Error()
	}
	defer signed.Close()
	f, err := factsOf(signed, s.origin, s.signedFile())
	if err != nil {
		return err.Error()
	}
	if info, err := signed.Stat(); err == nil {
		for _, from := range s.known() {
			if is := stamp.At(from.path); is != (stamp.Stamp{}) && is.Changed().After(info.ModTime()) {
				return changed(from.path)
			}
		}
	}
	why := s.judge(f, now)
	if why == "" {
		s.counts = zonekeys.Span{Inception: at(f.sigs[0].Inception, now), Expiration: at(f.sigs[0].Expiration, now)}
	}
	return why
}

// lapsed reports whether the signatures do not count now, or not for long, because the clock was set: as time goes, they
// are made anew long before.
func (s *Signer) lapsed(now time.Time) bool {
	now = now.Round(0) // what the clock says, not what has passed
	return !s.counts.Expiration.IsZero() && (now.Before(s.counts.Inception) || s.counts.Expiration.Sub(now) < left)
}

// judge decides by the signatures of the SOA record, and by what the signer would do differently now.
func (s *Signer) judge(f facts, now time.Time) string {
	if len(f.sigs) == 0 {
		return "no SOA RRSIG found"
	}
	var tags, want []uint16
	for _, sig := range f.sigs {
		inception, expiry := at(sig.Inception, now), at(sig.Expiration, now)
		switch {
		case now.Before(inception):
			return fmt.Sprintf("inception date of RRSIG is in the future: %s", inception.Format(time.RFC3339))
		case now.Sub(inception) > oldAge:
			return fmt.Sprintf("inception date of RRSIG was more than %s ago: %s", oldAge, inception.Format(time.RFC3339))
		case expiry.Sub(now) < left:
			return fmt.Sprintf("expiration of RRSIG is in less than %s: %s", left, expiry.Format(time.RFC3339))
		}
		tags = append(tags, sig.KeyTag)
	}
	for _, k := range s.keys {
		want = append(want, k.KeyTag)
	}
	slices.Sort(tags)
	slices.Sort(want)
	switch {
	case !slices.Equal(tags, want):
		return "the keys are others"
	case f.nsec3 != s.nsec3:
		return "denial is proved in another way"
	case f.zonemd != s.zonemd:
		return "the digest is to come or to go"
	}
	return ""
}

// at is the time that a field of a signature stands for, near now (RFC 4034 §3.1.5).
func at(seconds uint32, now time.Time) time.Time {
	return now.Add(time.Duration(int32(seconds-uint32(now.Unix()))) * time.Second).UTC().Truncate(time.Second)
}

// factsOf reads the begin of a signed file.
func factsOf(r io.Reader, origin, name string) (f facts, err error) {
	apex, err := wire.LowerName(origin)
	if err != nil {
		return f, err
	}
	p := zonefile.New(r, name, apex)
	for range begin {
		rec, err := p.Next()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		if !wire.EqualFold(rec.Owner, apex) {
			continue
		}
		switch rec.Type {
		case dns.TypeNSEC3PARAM:
			f.nsec3 = true
		case dns.TypeZONEMD:
			f.zonemd = true
		case dns.TypeRRSIG:
			rr, err := zone.Record{Owner: rec.Owner, Type: rec.Type, TTL: rec.TTL, RData: rec.RData}.RR()
			if err != nil {
				return f, err
			}
			if sig := rr.(*dns.RRSIG); sig.TypeCovered == dns.TypeSOA {
				f.sigs = append(f.sigs, sig)
			}
		}
	}
	return f, nil
}
