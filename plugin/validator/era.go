package validator

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// What is validated with depends on the time: the root has other keys every some years, and algorithms are given up. A
// validation_time in the past has records judged as they were then, so that recorded traffic can be replayed. The clock
// of the machine decides nothing here: a wrong one must not turn validation off.

// builtin is the root's keys as IANA publishes their digests, each with its validFrom (RFC 9718 §2;
// https://data.iana.org/root-anchors/root-anchors.xml).
var builtin = []struct {
	from time.Time
	ds   string
}{
	{time.Date(2017, 2, 2, 0, 0, 0, 0, time.UTC), ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D"},
	{time.Date(2024, 7, 18, 0, 0, 0, 0, time.UTC), ". IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16"},
}

// withoutSHA1 is when RFC 9905 was published, before which validators had to validate RSA with SHA-1 (RFC 8624 §3.1).
var withoutSHA1 = time.Date(2025, 11, 1, 0, 0, 0, 0, time.UTC)

// withFewIterations is when RFC 9276 was published. Before it validators took up to 150 iterations of NSEC3, by which one
// denial may cost more hashes than a query may today.
var withFewIterations = time.Date(2022, 8, 1, 0, 0, 0, 0, time.UTC)

// unset is a limit of NSEC3 that is not configured.
const unset = -1

// before reports whether a validation_time is set that is before t.
func (s *settings) before(t time.Time) bool { return !s.fixed.IsZero() && s.fixed.Before(t) }

// trustRoot takes the built-in anchors that were valid already, unless others are configured for the root.
func (s *settings) trustRoot() error {
	if s.anchors[rrset.Root] != nil {
		return nil
	}
	for _, b := range builtin {
		if s.before(b.from) {
			continue
		}
		rr, err := dns.NewRR(b.ds)
		if err == nil {
			err = s.anchor(rr)
		}
		if err != nil {
			return err
		}
		s.anchors[rrset.Root].Builtin = true
	}
	return nil
}

// countsSHA1 reports whether signatures of the algorithms 5 and 7 are validated.
func (s *settings) countsSHA1() bool {
	if s.sha1 == "" {
		return s.before(withoutSHA1)
	}
	return s.sha1 == "validate"
}

// limitNSEC3 sets the limits that are not configured.
func (s *settings) limitNSEC3() {
	iterations, hashes := 50, validate.DefaultBudget().Hashes
	if s.before(withFewIterations) {
		iterations, hashes = 150, 1000
	}
	if s.conf.Iterations == unset {
		s.conf.Iterations = iterations
	}
	if s.conf.Budget.Hashes == unset {
		s.conf.Budget.Hashes = hashes
	}
}

// warnEra tells of what is judged otherwise than today.
func (s *settings) warnEra() {
	if !s.fixed.IsZero() {
		logger.Warningf("validation_time is %s: signatures are judged by a time that stands still", s.fixed.UTC())
	}
	if s.before(withFewIterations) {
		logger.Warningf("validation_time is before RFC 9276: NSEC3 with up to %d iterations is validated", s.conf.Iterations)
	}
	if s.anchors[rrset.Root] == nil {
		logger.Warningf("The built-in anchors of the root are younger than validation_time: what is below no other anchor is not validated")
	}
	if s.countsSHA1() {
		if s.sha1 == "" {
			logger.Warningf("validation_time is before RFC 9905: RSA with SHA-1 is validated")
		}
		return
	}
	for name, a := range s.anchors {
		if len(a.Own) > 0 {
			logger.Warningf("The anchor of %s has it validated by RSA with SHA-1, which RFC 9905 advises against", rrset.Text(name))
		}
	}
}
