package dnsutil

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// Join makes one fully qualified name of labels, each of which may also be a name of several labels. Parts that
// are empty or "." add nothing, so Join("www", "example.org", ".") is "www.example.org.", and Join() is ".".
func Join(labels ...string) string {
	size := 1
	for _, l := range labels {
		size += len(l) + 1
	}
	var b strings.Builder
	b.Grow(size)
	for _, l := range labels {
		if l = unqualified(l); l != "" {
			b.WriteString(l)
			b.WriteByte('.')
		}
	}
	if b.Len() == 0 {
		return "."
	}
	return b.String()
}

// TrimZone returns the part of q before the zone z, without its final dot: "www" for "www.example.org." and
// "example.org.". It is an error if that part is empty or q is not below z.
func TrimZone(q string, z string) (string, error) {
	name, zone := unqualified(q), unqualified(z)
	if zone == "" && name != "" {
		return name, nil
	}
	dot := len(name) - len(zone) - 1
	if dot <= 0 || name[dot] != '.' || isEscaped(name, dot) || !strings.EqualFold(name[dot+1:], zone) {
		return "", fmt.Errorf("trimming zone: %q is not below %q", q, z)
	}
	return name[:dot], nil
}

// DuplicateCNAME tells whether one of records is a CNAME with the target of r.
func DuplicateCNAME(r *dns.CNAME, records []dns.RR) bool {
	for _, rr := range records {
		if c, ok := rr.(*dns.CNAME); ok && strings.EqualFold(c.Target, r.Target) {
			return true
		}
	}
	return false
}

// unqualified returns name without its final dot, "" for the root. An escaped final dot belongs to the last label.
func unqualified(name string) string {
	if last := len(name) - 1; last >= 0 && name[last] == '.' && !isEscaped(name, last) {
		return name[:last]
	}
	return name
}

// isEscaped tells whether an odd number of backslashes stands before name[i].
func isEscaped(name string, i int) bool {
	escaped := false
	for i > 0 && name[i-1] == '\\' {
		escaped = !escaped
		i--
	}
	return escaped
}
