package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// difference is where what is said of a name may differ from what a peer says, and why. ours and theirs are states, or
// what is said, or several of these with commas between them; empty for anything.
type difference struct {
	ours, theirs string
	faults       []string // of the zone, or of one that the name is an alias into
	names        []string // empty: all
	reason       string
}

var behindAliases = []string{"nowhere.", "x.dn.", "a.b.dn.", "hop.", "alias.", "x.cn.", "far.", "farther.", "back.sub.", "deep.", "insec."}

// Each peer's list. In these we keep to the RFC, or to bounds of our own.
var differences = map[string][]difference{
	"unbound": {
		{failed, "", []string{"DS of SHA-256 wrong"}, nil, "RFC 4509 §3: SHA-1 does not count beside SHA-256"},
		{failed, "", []string{"key revoked"}, nil, "RFC 5011 §2.1: a revoked key signs its own revocation only"},
		{failed, "", []string{"RSA exponent of 1"}, nil, "RFC 8017 §3.1: exponents begin with 3; by 1 anybody signs"},
		{failed, insecure, []string{"600 iterations"}, nil, "RFC 9276 §3.2: above 500 nothing is answered"},
		{insecure, secure, []string{"RSA of 512 bits"}, nil, "bounds of ours: a key below 1024 bits proves too little"},
		{insecure, secure, []string{"RSA of 4104 bits"}, nil, "RFC 5702 §2.1, §2.2: keys have 4096 bits at most"},
		{insecure, secure, []string{"RSA exponent of 33 bits", "RSA exponent of 70 bits"}, nil, "bounds of ours: exponents above 31 bits cost too much"},
		{failed, "", []string{"signed by the parent"}, nil, "RFC 4035 §5.3.1: the signer is the zone that has the RRset"},
		{failed, "", []string{"unknown flag"}, nil, "RFC 5155 §8.2: a record with an unknown flag is ignored"},
		{failed, "", []string{"unknown hash"}, nil, "RFC 5155 §8.1: a record with an unknown hash is ignored"},
		{failed, "", []string{"NXDOMAIN as NODATA"}, behindAliases, "RFC 4035 §5.4: behind an alias unbound does not look at the rcode"},
		{"", "", []string{"NODATA as NXDOMAIN"}, nil, "RFC 4035 §5.4: what the NSEC record proves counts, not the rcode"},
		{"", secure, []string{"labels of a wildcard"}, []string{"nowhere.", "no."}, "RFC 4035 §5.3.4: unbound takes the RRset for a wildcard's"},
		{failed, insecure, []string{"SOA unsigned"}, behindAliases, "RFC 4035 §5.5: where opt-out leaves no AD unbound does not look at the SOA"},
		{failed, secure, []string{"DNAME unsigned"}, behindAliases, "RFC 4035 §5.5: the RRset is unsigned, the alias made of it aside"},
	},
	"delv": {
		{failed, insecure, []string{"600 iterations"}, nil, "RFC 9276 §3.2: above 500 nothing is answered"},
		{insecure, secure, []string{"60 iterations"}, nil, "RFC 9276 §3.2: BIND serves 150, we 50"},
		{insecure, secure, []string{"RSA of 512 bits"}, nil, "bounds of ours: a key below 1024 bits proves too little"},
		{insecure, secure, []string{"RSA exponent of 33 bits"}, nil, "bounds of ours: exponents above 31 bits cost too much"},
		{insecure, failed, []string{"RSA of 4104 bits", "RSA exponent of 70 bits"}, nil, "RFC 4035 §5.2: what is not served counts as unsigned"},
		{insecure, secure, []string{"opt-out where it is not"}, nil, "RFC 5155 §9.2: no AD for names that opt-out may hide"},
		{failed, "", []string{"unknown flag"}, nil, "RFC 5155 §8.2: a record with an unknown flag is ignored"},
		{failed, secure, []string{"SOA changed", "SOA unsigned"}, nil, "RFC 4035 §5.5: BIND does not look at the SOA of a denial"},
		{failed, "", []string{"signed by the parent"}, nil, "RFC 4035 §5.3.1: the signer is the zone that has the RRset"},
		{secure, failed, []string{"labels fewer than the zone's"}, []string{"alias.", "x.cn."}, "named takes no reply with such a signature, and asks anew without EDNS: delv gets the alias without its own"},
		{"", failed, []string{"a bad signature first", "nine bad signatures first"}, nil, "RFC 6840 §5.11: one good signature suffices, BIND gives up"},
		{failed, "", []string{"RSA exponent of 1"}, nil, "RFC 8017 §3.1: exponents begin with 3; by 1 anybody signs"},
		{"", failed, []string{"NODATA as NXDOMAIN", "no SOA"}, nil, "RFC 2308 §2: named resolves no such name, so delv gets nothing"},
	},
	"unbound's EDE": {
		{"29", "none", nil, nil, "code 29: answered from a denial that is kept (RFC 8198)"},
		{"1", "none", []string{"DS algorithm 12", "RSA of 512 bits", "RSA of 4104 bits", "RSA exponent of 33 bits", "RSA exponent of 70 bits"}, nil, "RFC 8914 §4.2: unbound does not tell"},
		{"2", "none", []string{"DS digest 3"}, nil, "RFC 8914 §4.3: unbound does not tell"},
		{"27", "none", []string{"60 iterations"}, nil, "RFC 9276 §3.2: unbound does not tell"},
		{"7", "6,9", []string{"expired", "keys expired"}, nil, "RFC 8914 §4.8: unbound tells bogus only"},
		{"8", "6,9", []string{"future"}, nil, "RFC 8914 §4.9: unbound tells bogus only"},
		{"25", "6,8", []string{"expires before it begins"}, nil, "code 25: unbound does not have it"},
		{"9", "6", []string{"no keys", "not signed", "protocol 2", "wrong DS", "key is no point", "key too short", "RSA exponent of 1", "RSA modulus is even", "DS of SHA-256 wrong"}, nil, "RFC 8914 §4.10: unbound tells bogus only"},
		{"10", "6,9", []string{"DNAME left out", "DNAME unsigned", "DS unsigned", "SOA unsigned", "alias unsigned", "denials unsigned", "keys unsigned", "www unsigned"}, nil, "RFC 8914 §4.11: unbound tells bogus, or the keys it could not use"},
		{"11", "6,9", []string{"zone bit clear"}, nil, "RFC 8914 §4.12: unbound tells bogus only"},
		{"12", "10", []string{"no closest encloser", "no denials"}, nil, "RFC 8914 §4.13: unbound misses signatures where denials are missing"},
		{"12", "6,9", []string{
			"NXDOMAIN as NODATA", "all types denied", "iterations mixed", "labels of a wildcard", "next name outside", "no closest encloser", "no denials", "no wildcard proof",
			"parent's denials for the child", "parent's hashed denials for the child", "salt mixed", "unknown flag", "unknown hash", "not signed, no proof",
		}, nil, "RFC 8914 §4.13: unbound tells bogus, or the keys or signatures it could not use"},
		{"6", "9,10", []string{"signed by a sibling", "signer changed", "signer is no zone", "a key added", "key tag changed", "signed by a stranger in its name", "labels changed"}, nil, "RFC 8914 §4.7: there are signatures and keys, but none fits"},
	},
}

// Differences that a zone's denials or the name bring about, whatever its fault.
var (
	aliasSigned = &difference{reason: "RFC 6672 §5.3.1: the alias that a DNAME makes has no signature; one that is there is left out"}
	optOutAD    = &difference{reason: "RFC 5155 §9.2: no AD for names that opt-out may hide"}
)

// differs is the row of a difference that is known, nil if there is none.
func differs(who string, z *signedZone, q signedName, ours, theirs string) *difference {
	switch {
	case who == "unbound" && z.online() && strings.HasSuffix(q.name, ".dn.") && words(ours) == words(theirs):
		return aliasSigned
	case who == "delv" && z.denial == "opt-out" && ours == insecure && theirs == secure:
		return optOutAD
	}
	for i := range differences[who] {
		d := &differences[who][i]
		if matches(d.ours, ours) && matches(d.theirs, theirs) && (d.faults == nil || slices.ContainsFunc(z.faults(q), func(f string) bool { return slices.Contains(d.faults, f) })) &&
			(d.names == nil || slices.Contains(d.names, q.name)) {
			return d
		}
	}
	return nil
}

// unused is the rows that are not among the used ones.
func unused(used map[*difference]bool) (rows []string) {
	for _, d := range []*difference{aliasSigned, optOutAD} {
		if !used[d] {
			rows = append(rows, d.reason)
		}
	}
	for who, list := range differences {
		for i := range list {
			if d := &list[i]; !used[d] {
				rows = append(rows, fmt.Sprintf("%s: ours %q, theirs %q, %q: %s", who, d.ours, d.theirs, d.faults, d.reason))
			}
		}
	}
	slices.Sort(rows)
	return rows
}

// words is what is said, but for the number of records.
func words(said string) string { return said[:max(0, strings.LastIndex(said, " "))] }

func matches(want, said string) bool {
	if want == "" {
		return true
	}
	for one := range strings.SplitSeq(want, ",") {
		if one == "none" && said == "" || one == said || one == status(said) {
			return true
		}
	}
	return false
}

// faults is those of the zones that a name leads into.
func (z *signedZone) faults(q signedName) []string {
	all := []string{z.fault.name}
	if n := map[string]int{"far.": 1, "farther.": 2}[q.name]; n > 0 {
		i := slices.Index(z.lab.zones, z)
		for range n {
			i = (i + 1) % len(z.lab.zones)
			all = append(all, z.lab.zones[i].fault.name)
		}
	}
	return all
}

// A row that no name needs is told, and one is needed only by what it lists.
func TestUnusedDifferences(t *testing.T) {
	z := &signedZone{fault: &zoneFault{name: "key revoked"}, denial: "nsec"}
	d := differs("unbound", z, signedName{"www.", 1}, "SERVFAIL", "NOERROR AD 2")
	if d == nil || differs("unbound", z, signedName{"www.", 1}, "NOERROR AD 2", "NOERROR AD 2") != nil {
		t.Fatalf("%+v", d)
	}
	all, rest := unused(nil), unused(map[*difference]bool{d: true})
	if len(rest) != len(all)-1 || slices.ContainsFunc(rest, func(row string) bool { return strings.Contains(row, d.reason) }) {
		t.Errorf("of %d rows %d are unused: %q", len(all), len(rest), rest)
	}
	z.fault = &zoneFault{name: "zone bit clear"}
	for theirs, want := range map[string]bool{"6": true, "9": true, "10": false, "": false} {
		if got := differs("unbound's EDE", z, signedName{"www.", 1}, "11", theirs); (got != nil) != want {
			t.Errorf("code %q: %+v", theirs, got)
		}
	}
}
