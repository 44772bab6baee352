package dnsutil

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// Join makes one fully qualified name of labels, each of which may also be a name of several labels. The last one
// may be "." or end in a dot: Join("www", "example.org.") and Join("www", "example.org", ".") are
// "www.example.org.", and Join() is ".". Nothing is left out of what stands before: an empty part, or one that ends
// in a dot, makes an empty label.
func Join(labels ...string) string {
	if last := len(labels) - 1; last >= 0 && labels[last] == "." {
		labels = labels[:last]
	}
	return dns.Fqdn(strings.Join(labels, "."))
}

// TrimZone returns q without as many labels at its end as z has, and without its final dot: "www" for
// "www.example.org." and "example.org.". The labels are counted, not compared: callers that do not know q to be
// below z ask dns.IsSubDomain. It is an error if nothing is left, unless both are the root.
func TrimZone(q string, z string) (string, error) {
	z = dns.Fqdn(z)
	if q == "." && z == "." {
		return "", nil
	}
	rest, ok := unqualified(q), true
	for range dns.CountLabel(z) {
		if rest, ok = parent(rest); !ok {
			break
		}
	}
	if rest == "" || !ok {
		return "", fmt.Errorf("trimming zone: %q has no more labels than %q", q, z)
	}
	return rest, nil
}

// parent returns name without its last label, and false if it has no other.
func parent(name string) (string, bool) {
	for dot := len(name) - 1; dot >= 0; dot-- {
		if name[dot] == '.' && !isEscaped(name, dot) {
			return name[:dot], true
		}
	}
	return "", false
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
