package validate

import (
	"maps"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// What is held of an RRset is not computed again until its signature ends, and its TTL ends with that. It holds for
// these records, this signature, and these keys alone.
func TestHeld(t *testing.T) {
	root := newSigner(t, ".", dns.ECDSAP256SHA256)
	w := newWorld(t, root)
	checks := 0
	w.conf.CheckCounted = func(uint8, bool) { checks++ }
	memory := remembering{known{}, map[Sum]Held{}}
	w.conf.Memory = memory
	good := root.signed(t, "", "www. 300 IN A 192.0.2.1", "www. 300 IN A 192.0.2.2")
	judge := func(answer []dns.RR) *Verdict {
		checks = 0
		return w.judge("www.", dns.TypeA, message(t, "www.", dns.TypeA, 0, answer, nil))
	}
	change := func(f func(a *dns.A, sig *dns.RRSIG)) []dns.RR {
		all := expand(good, "www.")
		f(all[0].(*dns.A), all[2].(*dns.RRSIG))
		return all
	}
	w.want("new", judge(good), Secure, 0)
	if checks != 2 || len(memory.checks) != 2 { // the keys and the answer
		t.Fatalf("%d signatures, %d held", checks, len(memory.checks))
	}
	w.want("held", judge(good), Secure, 0)
	if checks != 0 {
		t.Errorf("held: %d signatures", checks)
	}
	w.want("another record", judge(change(func(a *dns.A, _ *dns.RRSIG) { a.A[15] ^= 1 })), Bogus, dns.ExtendedErrorCodeDNSBogus)
	w.want("another signature", judge(change(func(_ *dns.A, s *dns.RRSIG) { s.Signature = "AAAA" + s.Signature[4:] })), Bogus, dns.ExtendedErrorCodeDNSBogus)
	w.want("another life", judge(change(func(_ *dns.A, s *dns.RRSIG) { s.Expiration++ })), Bogus, dns.ExtendedErrorCodeDNSBogus)
	if len(memory.checks) != 2 {
		t.Errorf("%d held after bogus ones", len(memory.checks))
	}
	before := maps.Clone(memory.checks)
	for _, tc := range []struct {
		left   int64 // seconds of the signature
		checks int
		most   uint32
	}{{100, 0, 100}, {1000, 0, 300}, {1, 0, 1}, {0, 2, 300}, {-5, 2, 300}} {
		for sum, h := range before {
			h.Until = testNow.Unix() + tc.left
			memory.checks[sum] = h
		}
		v := judge(good)
		if w.want("with time left", v, Secure, 0); checks != tc.checks {
			t.Errorf("%d seconds left: %d signatures, want %d", tc.left, checks, tc.checks)
		}
		for _, p := range v.Proof {
			if p.Name == rrset.MustName("www.") && p.Most != tc.most {
				t.Errorf("%d seconds left: a TTL of %d, want %d", tc.left, p.Most, tc.most)
			}
		}
	}
	other := newSigner(t, ".", dns.ECDSAP256SHA256)
	w.conf.Anchors[rrset.Root].DS = []string{rdataOf(t, other.key.ToDS(dns.SHA256))}
	w.keys(other)
	w.want("other keys", judge(good), Bogus, dns.ExtendedErrorCodeDNSBogus)
}

// keeping remembers keys, too.
type keeping struct{ remembering }

func (k keeping) KeepNode(name string, n *Node) { k.known[name] = n }

// A Glance takes what is known already, computes no signature, and leaves the Task as it was if that is not enough.
func TestGlance(t *testing.T) {
	root := newSigner(t, ".", dns.ECDSAP256SHA256)
	w := newWorld(t, root)
	checks := 0
	w.conf.CheckCounted = func(uint8, bool) { checks++ }
	w.conf.Memory = keeping{remembering{known{}, map[Sum]Held{}}}
	one := message(t, "www.", dns.TypeA, 0, root.signed(t, "", "www. 300 IN A 192.0.2.1"), nil)
	two := message(t, "www.", dns.TypeA, 0, root.signed(t, "", "www. 300 IN A 192.0.2.2"), nil)
	q := Question{rrset.MustName("www."), dns.TypeA}
	for _, tc := range []struct {
		what   string
		reply  *rrset.Message
		enough bool
		checks int // by steps, after it
	}{{"nothing is known", one, false, 2}, {"all is known", one, true, 0}, {"the keys are known", two, false, 1}} {
		checks = 0
		task := New(&w.conf, q, tc.reply, testNow)
		if got := task.Glance(); got != tc.enough || checks != 0 {
			t.Errorf("%s: enough %t, %d signatures", tc.what, got, checks)
		}
		for missing := task.Step(); len(missing) > 0; missing = task.Step() {
			for _, q := range missing {
				task.Give(q, w.replies[q])
			}
		}
		if w.want(tc.what, task.Verdict(), Secure, 0); checks != tc.checks {
			t.Errorf("%s: %d signatures, want %d", tc.what, checks, tc.checks)
		}
	}
}
