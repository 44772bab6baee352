package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"

	"github.com/miekg/dns"
)

// This file is zones of which nothing costs a signature: what they have was checked before, or is not signed. There is
// so much of it that to look at all takes seconds.

// lasting is a Memory that forgets nothing.
type lasting struct {
	nodes  map[string]*Node
	checks map[Sum]Held
}

func (l *lasting) Node(name string, _ time.Time) *Node { return l.nodes[name] }
func (l *lasting) KeepNode(name string, n *Node)       { l.nodes[name] = n }
func (l *lasting) Check(sum Sum) (h Held, ok bool)     { h, ok = l.checks[sum]; return h, ok }
func (l *lasting) KeepCheck(sum Sum, h Held)           { l.checks[sum] = h }

// crowd is a lab with a memory, and a name of it of so many labels below example. None of these begins a zone, which is
// proven by the same two RRsets for each.
func crowd(t *testing.T, labels int, more ...dns.RR) (w *world, z *signer, name string, denial []dns.RR) {
	t.Helper()
	w, _, z = lab(t, dns.ED25519)
	w.conf.Memory = &lasting{map[string]*Node{}, map[Sum]Held{}}
	denial = append(z.signed(t, "", soa), z.signed(t, "", "a.example. 300 IN NSEC "+strings.Repeat("a.", 120)+"example. TXT RRSIG NSEC")...)
	name = "example."
	for range labels {
		name = "a." + name
		w.put(name, dns.TypeDS, 0, nil, slices.Concat(denial, more))
	}
	return w, z, name, denial
}

// bare is so many RRsets without signatures, format is of one of them.
func bare(t *testing.T, n int, format string) (all []dns.RR) {
	t.Helper()
	for i := range n {
		rr, err := dns.NewRR(fmt.Sprintf(format, i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rr)
	}
	return all
}

// tooMany checks that a reply is refused for the sake of a budget, soon, also if all of it was signed that can be.
func (w *world) tooMany(t *testing.T, what, budget, name string, typ uint16, m *rrset.Message) {
	t.Helper()
	kept := w.conf.Memory.(*lasting)
	nodes := kept.nodes
	for range 20 { // some signatures each
		kept.nodes = maps.Clone(nodes)
		w.judge(name, typ, m)
	}
	var v *Verdict
	took := wiretest.Cost(t, func() {
		kept.nodes = maps.Clone(nodes)
		v = w.judge(name, typ, m)
	})
	t.Logf("%s: %v, %d questions, %v %q", what, took, len(w.asked), v.Status, v.Text)
	if took > bound {
		t.Errorf("%s: %v, want at most %v", what, took, bound)
	}
	w.want(what, v, Bogus, dns.ExtendedErrorCodeDNSSECIndeterminate)
	if v.Text != "budget "+budget {
		t.Errorf("%s: %q, want budget %s", what, v.Text, budget)
	}
}

// Each of many replies about a chain has a thousand denials that are not signed, or signed by what is no key.
func TestManyDenialsOnTheWay(t *testing.T) {
	forged := bare(t, 450, "y%d.example. 300 IN NSEC z.example. A")
	for _, rr := range forged {
		sig := &dns.RRSIG{
			Hdr: header(rr.Header().Name, dns.TypeRRSIG), TypeCovered: dns.TypeNSEC, Algorithm: dns.ED25519, Labels: 2, OrigTtl: 300,
			Inception: uint32(testNow.Unix()), Expiration: uint32(testNow.Unix()) + 3600, KeyTag: 1, SignerName: "example.", Signature: "AAAA",
		}
		forged = append(forged, sig)
	}
	for what, junk := range map[string][]dns.RR{"unsigned": bare(t, 900, "x%d.example. 300 IN NSEC y.example. A"), "forged": forged} {
		w, _, name, _ := crowd(t, 100, junk...)
		w.tooMany(t, what, "nsec_records", name, dns.TypeA, message(t, name, dns.TypeA, 0, bare(t, 1, strings.Replace(name, "a.", "a%d.", 1)+" 300 IN A 192.0.2.1"), nil))
	}
}

// Hundreds of good denials each cover a name, and none proves that there is no wildcard.
func TestManyDenialsCover(t *testing.T) {
	w, z, _, denial := crowd(t, 0)
	all := denial[:2:2] // the SOA and its signature
	for i := range 400 {
		all = append(all, z.signed(t, "", fmt.Sprintf("a%d.example. 300 IN NSEC zz.example. A RRSIG NSEC", i))...)
	}
	w.tooMany(t, "denials", "nsec_records", "b.example.", dns.TypeA, message(t, "b.example.", dns.TypeA, 3, nil, all))
}

// At each of many steps, all of a large reply is gone through again, down a chain of many labels.
func TestManyStepsOverManyRRsets(t *testing.T) {
	w, z, name, denial := crowd(t, 60)
	all := bare(t, 800, name+` 300 IN TYPE6%04d \# 1 00`)
	for i := range 60 {
		cut := fmt.Sprintf("z%d.example.", i)
		w.put(cut, dns.TypeDS, 0, nil, denial)
		all = append(all, bare(t, 1, cut+` 300 IN TYPE6%04d \# 1 00`)...)
	}
	m := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), all)
	w.judge(name, dns.TypeA, message(t, name, dns.TypeA, 0, bare(t, 1, strings.Replace(name, "a.", "a%d.", 1)+" 300 IN A 192.0.2.1"), nil))
	w.tooMany(t, "steps", "rrsets", "www.example.", dns.TypeA, m)
}

// Nor does a chain of aliases that wildcards have made, each in a zone of which nothing is known.
func TestManyWildcardAliasesHold(t *testing.T) {
	w, root, _ := lab(t, dns.ED25519)
	var answer, ns []dns.RR
	const most = 11
	for i := range most {
		z := newSigner(t, fmt.Sprintf("z%d.", i), dns.ED25519)
		w.child(root, z)
		text := fmt.Sprintf("*.z%d. 300 IN CNAME x.z%d.", i, i+1)
		if i == most-1 {
			text = fmt.Sprintf("*.z%d. 300 IN A 192.0.2.1", i)
		}
		answer = append(answer, z.signed(t, fmt.Sprintf("x.z%d.", i), text)...)
		ns = append(ns, z.signed(t, "", fmt.Sprintf("*.z%d. 300 IN NSEC z%d. A CNAME RRSIG NSEC", i, i))...)
	}
	v := w.judge("x.z0.", dns.TypeA, message(t, "x.z0.", dns.TypeA, 0, answer, ns))
	if w.want("aliases", v, Secure, 0); 2*v.Looks > w.conf.Budget.Looks {
		t.Errorf("aliases: %d looks, of %d that there may be", v.Looks, w.conf.Budget.Looks)
	}
}

// No honest zone comes near: names as long as reverse ones of IPv6, whose denials have as many records as may be.
func TestDeepNameHolds(t *testing.T) {
	w, z, _, _ := crowd(t, 0)
	w.conf.Memory = nil
	name := "example."
	var denial []dns.RR
	for range 34 {
		name = "a." + name
		denial = append(z.signed(t, "", soa), z.signed(t, "", near(name, 1, 0, false, ""))...)
		for i := range 7 {
			denial = append(denial, z.signed(t, "", near(fmt.Sprintf("n%d.example.", i), 1, 0, false, "A RRSIG"))...)
		}
		w.put(name, dns.TypeDS, 0, nil, denial)
	}
	w.conf.Budget.Checks = 1000
	v := w.judge(name, dns.TypeA, message(t, name, dns.TypeA, 0, nil, denial))
	if w.want("deep name", v, Secure, 0); 2*v.Looks > w.conf.Budget.Looks {
		t.Errorf("deep name: %d looks, of %d that there may be", v.Looks, w.conf.Budget.Looks)
	}
}
