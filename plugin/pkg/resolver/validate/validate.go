// Package validate finds out whether a reply is what the owners of its zones
// signed (RFC 4033 to 4035, 5155, 6840, 9824).
//
//	question, reply ──New──▶ Task ──Step──▶ questions that are missing (DS, DNSKEY) ──▶ caller asks ──Give──▶ Task
//	                          │                                                                             │
//	                          └── chain.go: anchor ▶ DS ▶ DNSKEY ▶ zone;  answer.go: each link of the reply ◀┘
//	                                     signature.go: one RRset;  nsec.go, nsec3.go: what does not exist
//
// It asks nobody, has no clock and keeps nothing: the time, the anchors, the
// budget and what is known already are given, and what is missing is told.
// What is not proven is never Secure. A Task is for one goroutine. Start at
// New and Step.
package validate

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Status is what can be said of data (RFC 4033 §5).
type Status uint8

// States, the better first: a reply is as good as its worst link.
const (
	Secure        Status = iota + 1
	Insecure             // it is proven that nothing proves it
	Indeterminate        // there is no anchor above it
	Bogus
)

// String is the state's name as metrics and logs have it.
func (s Status) String() string {
	switch s {
	case Secure:
		return "secure"
	case Insecure:
		return "insecure"
	case Indeterminate:
		return "indeterminate"
	case Bogus:
		return "bogus"
	}
	return "unknown"
}

// Question is what was asked, or is to be asked; the class is IN.
type Question struct {
	Name string // wire form, lower case
	Type uint16
}

// Finding is a Status and why; Told says that Code means something (RFC 8914).
type Finding struct {
	Status Status
	Code   uint16
	Told   bool
	Text   string // at most 80 octets
	Zone   string // that decided: wire form, empty if there is none
	Name   string // the question's, or the one that aliases have led to, which is bogus: wire form, empty if it is none
}

// Verdict is what became of a reply.
type Verdict struct {
	Finding
	Rcode int // the one that the proofs bear out
	// Proof is what was found to be secure on the way, denials among it, with the
	// TTL that each may have at most: what its signatures say, and what is left of
	// their time (RFC 4035 §5.3.3).
	Proof []Proven
	// Unproven is RRsets of the authority section that did not hold, and that nothing
	// depends on: they are left out there. What the answer has may have their names and
	// types.
	Unproven []*rrset.Set
	// Unasked is RRsets of the answer section that nobody has asked for, all of a secure
	// reply, of others those that are bogus. They are left out, too.
	Unasked []*rrset.Set
	// Additional is what of that section is secure, with the TTL that it may have. All
	// else there is left out of a secure reply.
	Additional []Proven
	// Chased is questions for targets of aliases whose replies belong to this one: it
	// had ended with an alias.
	Chased []Question
	Checks int // signatures that were computed, as the budget counts them
	Hashes int // of NSEC3, the same
	Looks  int // at RRsets, the same
	// Broken is where the chain ended, as keys or DS records are bogus.
	Broken []Question
	// Kept is names of the chain of which something was kept that a bogus reply disagrees with, as zones may begin
	// elsewhere now.
	Kept   []string
	Over   bool // the budget was spent
	denies bool // a name, or a type of one
}

// Proven is an RRset that is secure, and the TTL that it may have, in seconds.
type Proven struct {
	*rrset.Set
	Most uint32
}

// Anchor is what is believed of a zone without proof: RDATA of DS and DNSKEY
// records.
type Anchor struct {
	DS   []string
	Keys []string
	// Own are algorithms that count for the zone's own keys, though they are not among
	// Config.Algorithms: who configures such an anchor wants it.
	Own map[uint8]bool
	// Builtin says that nobody has configured it.
	Builtin bool
}

// Memory keeps what was found out, for as long as it holds. It may forget at
// any time, and may be shared.
type Memory interface {
	// Node is what is known of a name of the chain, nil if it is nothing, or not
	// true any more at now.
	Node(name string, now time.Time) *Node
	KeepNode(name string, n *Node)
	// Check is what was found out about an RRset that is secure, by a sum over it, its
	// signatures and keys.
	Check(sum Sum) (Held, bool)
	KeepCheck(sum Sum, h Held)
}

// Config is what holds for many Tasks. It does not change.
type Config struct {
	Anchors      map[string]*Anchor // by zone
	Negative     func(name string, now time.Time) bool
	Inside       func(zone string) bool // reports whether its names stay inside, where nobody signs; may be nil
	Algorithms   [256]bool              // that are supported and not switched off; see Algorithms
	Digests      [256]bool
	Iterations   int // of NSEC3, more are insecure
	SkewLeast    time.Duration
	SkewMost     time.Duration
	BogusTTL     time.Duration
	Budget       Budget
	Memory       Memory                           // nil: nothing is known
	CheckCounted func(algorithm uint8, good bool) // may be nil
}

// DefaultAlgorithms are those that are checked unless one switches them off;
// sha1 adds 5 and 7 (RFC 9905).
func DefaultAlgorithms(sha1 bool) (a [256]bool) {
	for _, n := range []uint8{dns.RSASHA256, dns.RSASHA512, dns.ECDSAP256SHA256, dns.ECDSAP384SHA384, dns.ED25519, dns.ED448} {
		a[n] = true
	}
	a[dns.RSASHA1], a[dns.RSASHA1NSEC3SHA1] = sha1, sha1
	return a
}

// DefaultDigests are those of DS records that are computed.
func DefaultDigests() (d [256]bool) {
	d[dns.SHA1], d[dns.SHA256], d[dns.SHA384] = true, true, true
	return d
}

// Task judges one reply.
type Task struct {
	conf    *Config
	q       Question
	reply   *rrset.Message
	now     time.Time
	left    Budget
	replies map[Question]*rrset.Message // nil for what could not be had
	nodes   []named
	checks  []checkedSet
	hashes  map[hashKey]string
	missing []Question
	chased  []Question
	cuts    []string // see Told
	kept    []string // see outdated
	over    string   // the budget that is spent
	glance  bool     // see Glance
	alone   bool     // see Alone
	verdict *Verdict
}

// New is a Task for the reply to q at a time.
func New(conf *Config, q Question, reply *rrset.Message, now time.Time) *Task {
	return &Task{conf: conf, q: q, reply: reply, now: now, left: conf.Budget}
}

// Told notes, before the first Step, that a server told some of the reply as one of a zone. So there may be a zone cut
// that the chain to the signer has not come to, and what a zone above it has signed for names below it is not believed.
func (t *Task) Told(zone string) { t.cuts = append(t.cuts, zone) }

// Alone notes, before the first Step, that who asked desires no recursion: where an unsigned alias leads is not asked
// for.
func (t *Task) Alone() { t.alone = true }

// Under has the Task go on with another Memory.
func (t *Task) Under(m Memory) {
	conf := *t.conf
	conf.Memory, t.conf = m, &conf
}

// Glance is Step for a caller who has no time: no signature is computed, and nothing is asked. It reports whether there
// is a Verdict, as all that it takes is known already and nothing is bogus; if not, the Task is as before.
func (t *Task) Glance() bool {
	t.glance, t.left.Hashes = true, min(t.left.Hashes, glanceHashes)
	v := t.judge()
	if t.over == "" && len(t.missing) == 0 && v.Status != Bogus {
		t.verdict = v
		return true
	}
	t.nodes, t.checks = t.nodes[:0], t.checks[:0]
	t.glance, t.over, t.left, t.missing, t.chased = false, "", t.conf.Budget, nil, nil
	return false
}

// glanceHashes is how many blocks of SHA-1 a Glance may compute.
const glanceHashes = 16

// Step goes as far as it can. It tells what has to be given before it is
// called again; nothing once there is a Verdict.
func (t *Task) Step() (missing []Question) {
	if t.verdict != nil {
		return nil
	}
	t.missing, t.kept = nil, nil
	v := t.judge()
	if t.over != "" {
		v.Finding, t.missing, v.Over = bogus(dns.ExtendedErrorCodeDNSSECIndeterminate, "budget "+t.over), nil, true
	}
	if len(t.missing) > 0 {
		if t.left.Fetches -= len(t.missing); t.left.Fetches >= 0 {
			return t.missing
		}
		v.Finding, v.Over = bogus(dns.ExtendedErrorCodeDNSSECIndeterminate, "budget fetches"), true
	}
	for _, n := range t.nodes {
		if n.Broken() {
			v.Broken = append(v.Broken, n.blames(n.name))
		}
	}
	if v.Status == Bogus {
		v.Kept = t.kept
	}
	all := &t.conf.Budget
	v.Checks, v.Hashes, v.Looks = all.Checks-t.left.Checks, all.Hashes-t.left.Hashes, all.Looks-t.left.Looks
	t.verdict = v
	return nil
}

// Give hands over the reply to a question that Step told; nil if there is
// none.
func (t *Task) Give(q Question, reply *rrset.Message) {
	if t.replies == nil { // most often nothing is missing
		t.replies = map[Question]*rrset.Message{}
	}
	t.replies[q] = reply
}

// Verdict is the end, nil before Step has told that nothing is missing.
func (t *Task) Verdict() *Verdict { return t.verdict }

func bogus(code uint16, text string) Finding {
	return Finding{Status: Bogus, Code: code, Told: true, Text: text}
}

// worse is the worse of two findings; the first of equals, but for one that
// says why.
func worse(a, b Finding) Finding {
	if b.Status > a.Status || b.Status == a.Status && b.Told && !a.Told {
		return b
	}
	return a
}

// spend takes n of a budget, and notes if it had no more.
func (t *Task) spend(left *int, n int, name string) bool {
	if *left < n {
		t.over = name
		return false
	}
	*left -= n
	return true
}

// need notes a question whose reply is missing.
func (t *Task) need(q Question) {
	for _, m := range t.missing {
		if m == q {
			return
		}
	}
	t.missing = append(t.missing, q)
}

// find is the RRset of a name and type in a section, nil if there is none.
func find(sets []*rrset.Set, name string, typ uint16) *rrset.Set {
	for _, s := range sets {
		if s.Type == typ && s.Name == name {
			return s
		}
	}
	return nil
}

const (
	typeDNAME = wire.TypeDNAME
	typeRRSIG = wire.TypeRRSIG
	typeNX    = 128 // NXNAME (RFC 9824 §3.3)
)
