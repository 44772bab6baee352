package lab

import (
	"slices"
	"strings"
)

// difference is where what is said of a name may differ from what a peer says, and why. ours and theirs are states, or
// how what is said begins; empty for anything.
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
		{failed, insecure, []string{"no closest encloser"}, behindAliases, "RFC 5155 §8.3 asks for it; unbound's habit, of unknown cause"},
		{secure, failed, []string{"no closest encloser"}, []string{"x.dn.", "a.b.dn."}, "RFC 6672 §5.3.3: the reply with the DNAME has it; unbound asks for the target, too"},
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
		{secure, failed, []string{"unknown flag"}, []string{"farther."}, "all RRsets are signed, no denial is needed; BIND's habit, of unknown cause"},
		{failed, secure, []string{"SOA changed", "SOA unsigned"}, nil, "RFC 4035 §5.5: BIND does not look at the SOA of a denial"},
		{failed, "", []string{"signed by the parent"}, nil, "RFC 4035 §5.3.1: the signer is the zone that has the RRset"},
		{"", failed, []string{"labels fewer than the zone's"}, []string{"alias.", "www.", "x.cn."}, "RFC 4035 §5.3.1: www's signatures alone are spoiled; BIND's habit, of unknown cause"},
		{"", failed, []string{"a bad signature first", "nine bad signatures first"}, nil, "RFC 6840 §5.11: one good signature suffices, BIND gives up"},
		{failed, "", []string{"RSA exponent of 1"}, nil, "RFC 8017 §3.1: exponents begin with 3; by 1 anybody signs"},
		{"", failed, []string{"NODATA as NXDOMAIN", "no SOA"}, nil, "RFC 2308 §2: named resolves no such name, so delv gets nothing"},
	},
	"unbound's EDE": {
		{"29", "", nil, nil, "code 29: answered from a denial that is kept (RFC 8198)"},
		{"1", "none", []string{"DS algorithm 12", "RSA of 512 bits", "RSA of 4104 bits", "RSA exponent of 33 bits", "RSA exponent of 70 bits"}, nil, "RFC 8914 §4.2: unbound does not tell"},
		{"2", "none", []string{"DS digest 3"}, nil, "RFC 8914 §4.3: unbound does not tell"},
		{"27", "none", []string{"60 iterations"}, nil, "RFC 9276 §3.2: unbound does not tell"},
		{"7", "", []string{"expired", "keys expired"}, nil, "RFC 8914 §4.8: unbound tells bogus only"},
		{"8", "", []string{"future"}, nil, "RFC 8914 §4.9: unbound tells bogus only"},
		{"25", "", []string{"expires before it begins"}, nil, "code 25: unbound does not have it"},
		{"9", "", []string{"no keys", "not signed", "protocol 2", "wrong DS", "key is no point", "key too short", "RSA exponent of 1", "RSA modulus is even", "DS of SHA-256 wrong"}, nil, "RFC 8914 §4.10: unbound tells bogus only"},
		{"10", "", []string{"DNAME left out", "DNAME unsigned", "DS unsigned", "SOA unsigned", "alias unsigned", "denials unsigned", "keys unsigned", "www unsigned"}, nil, "RFC 8914 §4.11: unbound tells bogus, or the keys it could not use"},
		{"11", "", []string{"zone bit clear"}, nil, "RFC 8914 §4.12: unbound tells bogus only"},
		{"12", "", []string{
			"NXDOMAIN as NODATA", "all types denied", "iterations mixed", "labels of a wildcard", "next name outside", "no closest encloser", "no denials", "no wildcard proof",
			"parent's denials for the child", "parent's hashed denials for the child", "salt mixed", "unknown flag", "unknown hash", "not signed, no proof",
		}, nil, "RFC 8914 §4.13: unbound tells bogus, or the keys or signatures it could not use"},
		{"6", "", []string{"signed by a sibling", "signer changed", "signer is no zone", "a key added", "key tag changed", "signed by a stranger in its name", "labels changed"}, nil, "RFC 8914 §4.7: there are signatures and keys, but none fits"},
		{"5", "", []string{"nine bad signatures first"}, nil, "RFC 8914 §4.6: the work is bounded (CVE-2023-50387)"},
	},
}

// Differences that a zone's denials or the name bring about, whatever its fault.
const (
	aliasSigned = "RFC 6672 §5.3.1: the alias that a DNAME makes has no signature; one that is there is left out"
	optOutAD    = "RFC 5155 §9.2: no AD for names that opt-out may hide"
)

// differs is the reason of a difference that is known, empty if there is none.
func differs(who string, z *signedZone, q signedName, ours, theirs string) string {
	switch {
	case who == "unbound" && z.online() && strings.HasSuffix(q.name, ".dn.") && words(ours) == words(theirs):
		return aliasSigned
	case who == "delv" && z.denial == "opt-out" && ours == insecure && theirs == secure:
		return optOutAD
	}
	for _, d := range differences[who] {
		if matches(d.ours, ours) && matches(d.theirs, theirs) && (d.faults == nil || slices.ContainsFunc(z.faults(q), func(f string) bool { return slices.Contains(d.faults, f) })) &&
			(d.names == nil || slices.Contains(d.names, q.name)) {
			return d.reason
		}
	}
	return ""
}

// words is what is said, but for the number of records.
func words(said string) string { return said[:max(0, strings.LastIndex(said, " "))] }

func matches(want, said string) bool {
	switch want {
	case "":
		return true
	case "none":
		return said == ""
	}
	return want == said || want == status(said)
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
