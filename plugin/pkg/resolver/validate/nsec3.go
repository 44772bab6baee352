package validate

import (
	"crypto/sha1"
	"encoding/base32"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// nsec3 is an NSEC3 record that is secure (RFC 5155 §3).
type nsec3 struct {
	hash       string // of the owner
	next       string
	optOut     bool
	iterations int
	salt       string
	bitmap     string
}

type hashKey struct {
	name, salt string
	iterations int
}

var base32hex = base32.HexEncoding.WithPadding(base32.NoPadding)

// parseNSEC3 reads an NSEC3 record of a zone. It reports false if that is
// malformed, or of an unknown algorithm or flag (RFC 5155 §8.1, §8.2).
func parseNSEC3(s *rrset.Set, zone string) (n nsec3, ok bool) {
	r := s.First()
	if len(r) < 5 || r[0] != 1 || r[1] > 1 || rrset.Parent(s.Name) != zone || s.Name == rrset.Root {
		return n, false
	}
	at := 5 + int(r[4])
	if at >= len(r) || int(r[at]) != sha1.Size || at+1+sha1.Size > len(r) {
		return n, false
	}
	hash, err := base32hex.DecodeString(strings.ToUpper(rrset.FirstLabel(s.Name)))
	if err != nil || len(hash) != sha1.Size {
		return n, false
	}
	n = nsec3{
		hash: string(hash), next: r[at+1 : at+1+sha1.Size], optOut: r[1]&1 != 0, iterations: int(r[2])<<8 | int(r[3]), salt: r[5:at],
		bitmap: r[at+1+sha1.Size:],
	}
	return n, wellFormed(n.bitmap)
}

// mostIterations is the number above which a denial is not even insecure.
const mostIterations = 500

// codeIterations is the info code for too many iterations (RFC 9276 §3.2).
const codeIterations = 27

// addNSEC3 takes a record with the parameters of the first; others are no part
// of the same chain (RFC 5155 §8.2).
func (d *denials) addNSEC3(n nsec3) {
	switch {
	case n.iterations > mostIterations:
		d.param = worse(d.param, bogus(codeIterations, "NSEC3 iterations"))
		return
	case n.iterations > d.t.conf.Iterations:
		d.param = worse(d.param, Finding{Status: Insecure, Code: codeIterations, Told: true, Text: "NSEC3 iterations"})
		return
	}
	if len(d.nsec3) > 0 && (d.nsec3[0].iterations != n.iterations || d.nsec3[0].salt != n.salt) {
		return
	}
	d.nsec3 = append(d.nsec3, n)
}

func (n *nsec3) has(typ uint16) bool { return typed(n.bitmap, typ) }
func (n *nsec3) apex() bool          { return n.has(wire.TypeSOA) }
func (n *nsec3) parental() bool      { return n.has(wire.TypeNS) && !n.apex() }

// lacks is nsec.lacks. An alias says nothing of an NSEC, which may stand beside it (RFC 4035 §2.5): servers do not
// follow it for that.
func (n *nsec3) lacks(typ uint16, root bool) bool {
	if n.has(typ) || n.has(wire.TypeCNAME) && typ != rrset.TypeNSEC {
		return false
	}
	if typ == rrset.TypeDS {
		return !n.has(wire.TypeSOA) || root
	}
	return !n.parental()
}

// hash is the hash of a name by the records' parameters, empty if the budget
// is spent.
func (d *denials) hash(name string) string {
	p := &d.nsec3[0]
	k := hashKey{name, p.salt, p.iterations}
	if h, ok := d.t.hashes[k]; ok {
		return h
	}
	blocks := func(octets int) int { return (octets + 9 + 63) / 64 }
	if !d.t.spend(&d.t.left.Hashes, max(blocks(len(name)+len(p.salt)), p.iterations*blocks(sha1.Size+len(p.salt))), "nsec3_hashes") {
		return ""
	}
	h := hashOf(name, p.salt, p.iterations)
	if d.t.hashes == nil {
		d.t.hashes = map[hashKey]string{}
	}
	d.t.hashes[k] = h
	return h
}

// hashOf is the hash of a name (RFC 5155 §5).
func hashOf(name, salt string, iterations int) string {
	var room [sha1.Size + 255]byte
	h := sha1.Sum([]byte(name + salt))
	for range iterations {
		h = sha1.Sum(append(append(room[:0], h[:]...), salt...))
	}
	return string(h[:])
}

// Hashes are computed once for each name, and the budget counts them: a record with
// many iterations, or many labels of a name, would make work without end
// (CVE-2023-50868). Who is over the budget learns nothing, which proves nothing.

// match is the record of a name, nil if there is none.
func (d *denials) match(name string) *nsec3 {
	if len(d.nsec3) == 0 || !rrset.Below(name, d.zone) {
		return nil
	}
	h := d.hash(name)
	for i := range d.nsec3 {
		if h != "" && d.nsec3[i].hash == h {
			return &d.nsec3[i]
		}
	}
	return nil
}

// cover is the record that covers a name, nil if there is none.
func (d *denials) cover(name string) *nsec3 {
	if len(d.nsec3) == 0 || !rrset.Below(name, d.zone) {
		return nil
	}
	h := d.hash(name)
	for i := range d.nsec3 {
		n := &d.nsec3[i]
		if h == "" || h == n.hash || h == n.next {
			continue
		}
		if n.hash < n.next && n.hash < h && h < n.next || n.hash >= n.next && (h > n.hash || h < n.next) {
			return n
		}
	}
	return nil
}

// Walking up from the name, the first ancestor whose hash matches is the closest
// encloser, if the name one label below it is covered. Anything else proves nothing:
// not even that the ancestor is the closest. Of deep names that costs many hashes. It is
// the apex for most of them, whose record can be told by its types: then it comes first.

// encloser finds the closest encloser of a name, and what covers the next
// closer name (RFC 5155 §8.3). The closest encloser must not be a cut, seen
// from above, or lead elsewhere. Both are nil if it is not proven.
func (d *denials) encloser(name string) (encloser string, covering *nsec3) {
	if len(d.nsec3) == 0 {
		return "", nil
	}
	if below := rrset.Last(name, rrset.Labels(d.zone)+1); below != d.zone && slices.ContainsFunc(d.nsec3, func(n nsec3) bool { return n.apex() }) {
		if m := d.match(d.zone); m != nil && !m.has(typeDNAME) {
			if c := d.cover(below); c != nil {
				return d.zone, c
			}
		}
	}
	for next := name; next != d.zone && next != rrset.Root && d.t.over == ""; next = rrset.Parent(next) {
		up := rrset.Parent(next)
		m := d.match(up)
		if m == nil {
			continue
		}
		if m.parental() || m.has(typeDNAME) {
			return "", nil
		}
		return up, d.cover(next)
	}
	return "", nil
}

func outcomeOf(n *nsec3) outcome {
	switch {
	case n == nil:
		return unproven
	case n.optOut:
		return optedOut
	}
	return proven
}

// covered3 is whether a name is covered.
func (d *denials) covered3(name string) outcome { return outcomeOf(d.cover(name)) }

// nxdomainNSEC3 is nxdomain by NSEC3 (RFC 5155 §8.4).
func (d *denials) nxdomainNSEC3(name string) outcome {
	up, next := d.encloser(name)
	if next == nil || d.cover(wildcardOf(up)) == nil {
		return unproven
	}
	return outcomeOf(next)
}

// nodataNSEC3 is nodata by NSEC3 (RFC 5155 §8.5 to §8.7).
func (d *denials) nodataNSEC3(name string, typ uint16) outcome {
	if m := d.match(name); m != nil {
		if m.lacks(typ, name == rrset.Root) {
			return proven
		}
		return unproven
	}
	up, next := d.encloser(name)
	if next == nil {
		return unproven
	}
	if w := d.match(wildcardOf(up)); w != nil {
		if w.lacks(typ, false) && !w.parental() {
			return outcomeOf(next)
		}
		return unproven
	}
	if next.optOut { // a DS RRset that there is not, or an empty non-terminal above such (RFC 5155 §8.6, erratum 3441)
		return optedOut
	}
	return unproven
}

// atCut3 is atCut by NSEC3.
func (d *denials) atCut3(name string) (kind, Finding) {
	insecure := Finding{Status: Insecure}
	if m := d.match(name); m != nil {
		switch {
		case m.has(rrset.TypeDS) || m.has(wire.TypeSOA):
		case m.has(wire.TypeNS):
			return ended, insecure
		default:
			return plain, insecure
		}
	} else if _, next := d.encloser(name); next != nil {
		if next.optOut {
			return ended, insecure
		}
		return nothing, insecure
	}
	return ended, d.finding(unproven, "DS of "+rrset.Text(name))
}
