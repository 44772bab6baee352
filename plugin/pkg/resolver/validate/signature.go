package validate

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// Sum stands for an RRset, its signatures, and the keys that were tried.
type Sum [sha256.Size]byte

// Checked is what was found out about one RRset.
type Checked struct {
	Finding
	Held // if it is secure
}

// Held is what is kept of an RRset that was found to be secure. It has no pointers, so a collector does not look into a
// Memory of many.
type Held struct {
	Labels int    // of the signature that held; fewer than the owner's: a wildcard was expanded
	TTL    uint32 // that the signature allows, in seconds
	Until  int64  // the end of the signature, in seconds since 1970
}

// signature is an RRSIG record (RFC 4034 §3.1).
type signature struct {
	head       string // the RDATA up to the signer
	covered    uint16
	algorithm  uint8
	labels     int
	ttl        uint32
	expiration uint32
	inception  uint32
	tag        uint16
	signer     string // lower case
	bytes      string
	expanded   bool // from a wildcard
}

const sigHead = 18

// parseSig reads the RDATA of an RRSIG record. It reports false if that is
// malformed.
func parseSig(rdata string) (g signature, ok bool) {
	if len(rdata) < sigHead {
		return g, false
	}
	n := nameLen(rdata[sigHead:])
	if n == 0 || sigHead+n >= len(rdata) {
		return g, false
	}
	b := []byte(rdata[:sigHead])
	return signature{
		head: rdata[:sigHead], covered: binary.BigEndian.Uint16(b), algorithm: b[2], labels: int(b[3]), ttl: binary.BigEndian.Uint32(b[4:]),
		expiration: binary.BigEndian.Uint32(b[8:]), inception: binary.BigEndian.Uint32(b[12:]), tag: binary.BigEndian.Uint16(b[16:]),
		signer: rrset.Lower(rdata[sigHead : sigHead+n]), bytes: rdata[sigHead+n:],
	}, true
}

// labelsOf is how many labels a signature of an owner has: a wildcard's own is
// not counted (RFC 4034 §3.1.3).
func labelsOf(owner string) int {
	n := rrset.Labels(owner)
	if rrset.FirstLabel(owner) == "*" {
		n--
	}
	return n
}

// signerOf is the deepest zone at or above an RRset that one of its signatures
// names; a DS RRset lies in a zone above its owner. Empty if there is none.
func signerOf(s *rrset.Set) (signer string) {
	s.EachSig(func(r string) bool {
		g, ok := parseSig(r)
		if !ok || !rrset.Below(s.Name, g.signer) || s.Type == rrset.TypeDS && g.signer == s.Name {
			return true
		}
		if signer == "" || rrset.Labels(g.signer) > rrset.Labels(signer) {
			signer = g.signer
		}
		return true
	})
	return signer
}

// timely tells what is wrong with the time of a signature, 0 if nothing is.
// Tolerance is a tenth of its life, within bounds; times are compared as
// serial numbers (RFC 4034 §3.1.5).
func (t *Task) timely(g *signature) (code uint16) {
	life := int64(int32(g.expiration - g.inception))
	if life < 0 {
		return dns.ExtendedErrorCodeSignatureExpiredBeforeValid
	}
	skew := min(max(life/10, int64(t.conf.SkewLeast/time.Second)), int64(t.conf.SkewMost/time.Second))
	now := uint32(t.now.Unix())
	switch {
	case int64(int32(now-g.inception)) < -skew:
		return dns.ExtendedErrorCodeSignatureNotYetValid
	case int64(int32(g.expiration-now)) < -skew:
		return dns.ExtendedErrorCodeSignatureExpired
	}
	return 0
}

// fits tells what is wrong with a signature before any arithmetic, 0 if
// nothing is.
func (t *Task) fits(g *signature, s *rrset.Set, zone string) (code uint16) {
	if g.covered != s.Type || g.signer != zone || !rrset.Below(s.Name, g.signer) || !t.serves(zone, g.algorithm) {
		return dns.ExtendedErrorCodeDNSBogus
	}
	n := labelsOf(s.Name)
	if g.labels > n || g.labels < rrset.Labels(zone) {
		return dns.ExtendedErrorCodeDNSBogus
	}
	g.expanded = g.labels < n
	return t.timely(g)
}

// A sum over RRset, signatures and keys stands for the result, so that an RRset that
// comes again, in whatever reply, costs a hash instead of a signature. Only what is
// secure is kept: a bogus one may be mended by the next reply.

// check finds out whether an RRset is signed by one of a zone's keys.
func (t *Task) check(s *rrset.Set, zone string, keys []*key, id Sum) Checked {
	if c := t.checked(s); c != nil {
		return *c
	}
	sum := sumOf(s, zone, id)
	if m := t.conf.Memory; m != nil {
		if h, ok := m.Check(sum); ok {
			if left := h.Until - t.now.Unix(); left > 0 {
				h.TTL = min(h.TTL, uint32(min(left, 1<<31-1)))
				c := Checked{Finding{Status: Secure, Zone: zone}, h}
				t.checks = append(t.checks, checkedSet{s, c})
				return c
			}
		}
	}
	c := t.compute(s, zone, keys)
	c.Zone = zone
	if c.Status == Secure && t.conf.Memory != nil {
		t.conf.Memory.KeepCheck(sum, c.Held)
	}
	t.checks = append(t.checks, checkedSet{s, c})
	return c
}

// checkedSet is an RRset that was checked in a Task. There are few, so they are looked through.
type checkedSet struct {
	set *rrset.Set
	Checked
}

// checked is what was found out about an RRset in this Task, nil if it was not checked.
func (t *Task) checked(s *rrset.Set) *Checked {
	for i := range t.checks {
		if t.checks[i].set == s {
			return &t.checks[i].Checked
		}
	}
	return nil
}

// What a wildcard was expanded to is signed under the wildcard's name (RFC 4035 §5.3.2). So all expansions of one
// have one sum, and a flood of names below it costs one signature check.

func sumOf(s *rrset.Set, zone string, id Sum) Sum {
	name := s.Name
	if encloser, ok := SourceOf(s); ok {
		name = wildcardOf(encloser)
	}
	var room [1024]byte
	b := append(append(append(room[:0], id[:]...), zone...), name...)
	b = append(b, byte(s.Type>>8), byte(s.Type), byte(s.N>>8), byte(s.N))
	return sha256.Sum256(s.AppendAll(b))
}

// compute is check without memory.
func (t *Task) compute(s *rrset.Set, zone string, keys []*key) Checked {
	if s.Sigs == 0 {
		return Checked{Finding: bogus(dns.ExtendedErrorCodeRRSIGsMissing, "no RRSIG for "+about(s))}
	}
	why, sigs, trials := uint16(0), t.left.Sigs, t.left.Trials
	var data []string
	var found *Checked
	s.EachSig(func(r string) bool {
		g, ok := parseSig(r)
		code := uint16(dns.ExtendedErrorCodeDNSBogus)
		if ok {
			code = t.fits(&g, s, zone)
		}
		if code != 0 {
			why = finer(why, code)
			return true
		}
		if sigs--; sigs < 0 {
			t.over = "rrsigs_per_rrset"
			return false
		}
		if data == nil {
			data = rdatas(s)
		}
		good, code := t.try(s, &g, data, keys, &trials)
		if good {
			found = t.good(&g)
			return false
		}
		why = finer(why, code)
		return t.over == ""
	})
	if found != nil {
		return *found
	}
	return Checked{Finding: bogus(why, "no good RRSIG for "+about(s))}
}

// good is what a signature that holds allows.
func (t *Task) good(g *signature) *Checked {
	left := int64(int32(g.expiration - uint32(t.now.Unix())))
	left = max(left, 0) // within the tolerance
	return &Checked{
		Finding{Status: Secure}, Held{Labels: g.labels, TTL: min(g.ttl, uint32(left)), Until: t.now.Unix() + left},
	}
}

// finer is the code that tells more: any other than plain bogus, the first of
// equals.
func finer(a, b uint16) uint16 {
	if a == 0 || a == dns.ExtendedErrorCodeDNSBogus && b != 0 {
		return b
	}
	return a
}

// Keys that may not sign are left out before arithmetic, and so are those of another tag
// or algorithm: what is counted is work.

// try computes one signature with the keys that it may be of.
func (t *Task) try(s *rrset.Set, g *signature, data []string, keys []*key, trials *int) (good bool, code uint16) {
	code = dns.ExtendedErrorCodeDNSBogus
	tagged := t.left.Tagged
	for _, k := range keys {
		if k.tag != g.tag || k.algorithm != g.algorithm || k.public == nil {
			continue
		}
		if t.glance {
			t.over = "glance"
			return false, code
		}
		if k.flags&flagZone == 0 {
			code = dns.ExtendedErrorCodeNoZoneKeyBitSet
		}
		if !k.signs() {
			continue
		}
		if tagged--; tagged < 0 {
			t.over = "keys_per_tag"
			return false, code
		}
		if !t.spend(trials, 1, "trials") || !t.spend(&t.left.Checks, k.weight(), "checks") {
			return false, code
		}
		ok := k.verify(signedData(nil, s, g, data), g.bytes)
		if t.conf.CheckCounted != nil {
			t.conf.CheckCounted(g.algorithm, ok)
		}
		if ok {
			return true, 0
		}
	}
	return false, code
}

// about is an RRset's name and type for people.
func about(s *rrset.Set) string { return clip(rrset.Text(s.Name) + " " + dns.Type(s.Type).String()) }

// clip bounds what goes into a text of 80 octets.
func clip(s string) string { return s[:min(len(s), 60)] }
