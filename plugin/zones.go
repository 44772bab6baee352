package plugin

import (
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Zones is a list of zones, fully qualified and in lower case.
type Zones []string

// Matches is the longest of the zones that qname is or lies below, "" if there is
// none. Case does not count.
func (z Zones) Matches(qname string) string {
	longest, escaped := "", strings.IndexByte(qname, '\\') >= 0
	for _, zone := range z {
		if len(zone) > len(longest) && (asWritten(qname, zone) || (strings.IndexByte(zone, '\\') >= 0 || escaped && escapable(zone)) && asWritten(spelled(qname), spelled(zone))) {
			longest = zone
		}
	}
	return longest
}

// Normalize makes the zones fully qualified and lower case, in place.
func (z Zones) Normalize() {
	for i := range z {
		z[i] = Name(z[i]).Normalize()
	}
}

// Respell has the zones written as names of queries are, in place, for who compares texts: ä.org. is \195\164.org.
func (z Zones) Respell() {
	for i := range z {
		z[i] = spelled(z[i])
	}
}

// Name is a domain name in presentation form.
type Name string

// Matches reports whether child is n or lies below it.
func (n Name) Matches(child string) bool { return within(child, dns.Fqdn(string(n))) }

// Normalize is n fully qualified and in lower case.
func (n Name) Normalize() string { return strings.ToLower(dns.Fqdn(string(n))) }

// within reports whether name is zone or a name below it, label by label, without
// regard to case. zone is fully qualified; a final dot of name may be missing.
func within(name, zone string) bool {
	return Zones{zone}.Matches(name) != ""
}

// escapable reports whether names of queries may have escapes where zone has none, and be the same: a Corefile may have
// ä.org, where they are \195\164.org.
func escapable(zone string) bool {
	for i := range len(zone) {
		if isEscaped[zone[i]] {
			return true
		}
	}
	return false
}

// isEscaped tells which octets names of queries have escapes for.
var isEscaped = func() (all [256]bool) {
	for c := range all {
		all[c] = c <= ' ' || c > '~' || strings.IndexByte(`@;()"'`, byte(c)) >= 0
	}
	return all
}()

// spelled is name written as those of queries are; as it is if it is none.
func spelled(name string) string {
	lower, err := wire.LowerName(name)
	if err != nil {
		return name
	}
	return wire.Text(lower)
}

// asWritten is within for names that are written in the same way.
func asWritten(name, zone string) bool {
	if zone == "." {
		return true
	}
	if name == "" || name[len(name)-1] != '.' {
		zone = zone[:len(zone)-1]
	}
	cut := len(name) - len(zone)
	if cut < 0 || !equalFold(name[cut:], zone) {
		return false
	}
	if cut == 0 {
		return true
	}
	if name[cut-1] != '.' {
		return false
	}
	escapes := 0 // a dot behind an odd number of backslashes is part of a label
	for i := cut - 2; i >= 0 && name[i] == '\\'; i-- {
		escapes++
	}
	return escapes%2 == 0
}

// equalFold compares two strings of one length without regard to the case of ASCII letters.
func equalFold(a, b string) bool {
	for i := range len(a) {
		x, y := a[i], b[i]
		if x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}
