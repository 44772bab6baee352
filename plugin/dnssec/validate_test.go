package dnssec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

func validate(m *dns.Msg, keys []*DNSKEY, now time.Time) error {
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, set := range rrsets(section) {
			h := set[0].Header()
			referral := i > 0 && !m.Authoritative
			if h.Rrtype == dns.TypeRRSIG || h.Rrtype == dns.TypeOPT || referral && h.Rrtype != dns.TypeDS && h.Rrtype != dns.TypeNSEC {
				continue
			}
			if !dns.IsSubDomain("example.org.", h.Name) {
				continue
			}
			verified := 0
			for _, rr := range section {
				sig, ok := rr.(*dns.RRSIG)
				if !ok || sig.TypeCovered != h.Rrtype || !sameName(sig.Hdr.Name, h.Name) {
					continue
				}
				for _, k := range keys {
					if k.tag != sig.KeyTag {
						continue
					}
					if err := sig.Verify(k.K, set); err != nil {
						return fmt.Errorf("%v: %w", set, err)
					}
					labels := dns.CountLabel(h.Name)
					if strings.HasPrefix(h.Name, "*.") {
						labels-- // the asterisk does not count (RFC 4034 §3.1.3)
					}
					if int(sig.Labels) != labels || !sig.ValidityPeriod(now) || sig.SignerName != "example.org." || sig.OrigTtl != h.Ttl || sig.Hdr.Ttl != h.Ttl {
						return fmt.Errorf("signature %v for %v", sig, set)
					}
					verified++
				}
			}
			if verified == 0 {
				return fmt.Errorf("%v is not signed", set)
			}
		}
	}
	return nil
}

func denies(m *dns.Msg, name string, qtype uint16) error {
	for _, rr := range append(slices.Clone(m.Ns), m.Answer...) {
		n, ok := rr.(*dns.NSEC)
		if !ok {
			continue
		}
		owner, _ := wire.LowerName(n.Hdr.Name)
		next, err := wire.LowerName(n.NextDomain)
		if err != nil || wire.Compare(owner, next) >= 0 {
			return fmt.Errorf("%v ends before it begins (%v)", n, err)
		}
		if sameName(n.Hdr.Name, name) && !slices.Contains(n.TypeBitMap, qtype) && slices.IsSorted(n.TypeBitMap) {
			return nil
		}
	}
	return fmt.Errorf("no NSEC record denies %s %s: %v", name, dns.TypeToString[qtype], m.Ns)
}

func spoilt(m *dns.Msg) bool {
	for _, section := range [][]dns.RR{m.Answer, m.Ns} {
		for _, rr := range section {
			switch rr := rr.(type) {
			case *dns.A:
				rr.A[3] ^= 1
			case *dns.NSEC:
				rr.TypeBitMap = rr.TypeBitMap[1:]
			case *dns.CNAME:
				rr.Target = "x." + rr.Target
			case *dns.SOA:
				rr.Serial++
			case *dns.TXT:
				rr.Txt[0] += "!"
			case *dns.DS:
				rr.KeyTag++
			case *dns.MX:
				rr.Preference++
			case *dns.DNSKEY:
				rr.Flags ^= 1
			default:
				continue
			}
			return true
		}
	}
	return false
}

func hasSignatures(m *dns.Msg) bool {
	return slices.ContainsFunc(slices.Concat(m.Answer, m.Ns, m.Extra), func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeRRSIG })
}

func bitmapOf(m *dns.Msg) (s string) {
	for _, rr := range append(slices.Clone(m.Ns), m.Answer...) {
		if n, ok := rr.(*dns.NSEC); ok {
			for _, t := range n.TypeBitMap {
				s += " " + dns.Type(t).String()
			}
		}
	}
	return strings.TrimSpace(s)
}
