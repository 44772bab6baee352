package validate

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"

	"github.com/miekg/dns"
)

// This file is zones that want a validator to work: each may cost so much time and no more, and is told why.

// bound is what a query may cost of a processor, whatever zones hold. A slow machine needs longer than that for the
// signatures alone, of which there are at most mostChecks: there they may take what they take, and the rest of the work
// a quarter of that.
const (
	bound      = slower * 25 * time.Millisecond
	mostChecks = 48
)

// signatures is what so many checks of signatures cost by themselves.
func signatures(t *testing.T, algorithm uint8, n int) time.Duration {
	t.Helper()
	g := newSigner(t, "example.", algorithm)
	k := parseKey(rdataOf(t, g.key))
	sig, err := base64.StdEncoding.DecodeString(g.sign(t, "", g.key)[1].(*dns.RRSIG).Signature)
	if k == nil || err != nil {
		t.Fatalf("no key or signature of algorithm %d: %v", algorithm, err)
	}
	return wiretest.Cost(t, func() {
		for range n {
			if k.verify([]byte("other data"), string(sig)) {
				t.Error("a signature of other data holds")
			}
		}
	})
}

// hostile checks the verdict of a hostile zone: EDE 5 with the budget's name, or any if that is empty.
func (w *world) hostile(t *testing.T, what, budget, name string, algorithm uint8, m *rrset.Message) {
	t.Helper()
	var v *Verdict
	took := wiretest.Cost(t, func() { v = w.judge(name, m.Type, m) })
	t.Logf("%s: %v, %d signatures computed, %v %q", what, took, v.Checks, v.Status, v.Text)
	if v.Checks > mostChecks {
		t.Errorf("%s: %d signatures computed, want at most %d", what, v.Checks, mostChecks)
	}
	if took > bound {
		if alone := signatures(t, algorithm, v.Checks); took > alone+alone/4 {
			t.Errorf("%s: %v, want at most %v, or the %v of %d signatures and a quarter", what, took, bound, alone, v.Checks)
		}
	}
	if v.Status != Bogus || budget != "" && (v.Code != dns.ExtendedErrorCodeDNSSECIndeterminate || v.Text != "budget "+budget) {
		t.Errorf("%s: %v %d %q, want budget %s", what, v.Status, v.Code, v.Text, budget)
	}
}

// KeyTrap (CVE-2023-50387): many keys and many signatures that all could be each other's.
func TestKeyTrap(t *testing.T) {
	for _, a := range []uint8{dns.ECDSAP384SHA384, dns.ECDSAP256SHA256, dns.ED25519, dns.ED448} {
		w, _, z := lab(t, a)
		keys := []dns.RR{z.key}
		for range 31 {
			k := dns.Copy(z.key).(*dns.DNSKEY)
			k.Flags = 256
			if bits := map[uint8]int{14: 384, 13: 256}[a]; bits > 0 {
				if _, err := k.Generate(bits); err != nil {
					t.Fatal(err)
				}
			}
			keys = append(keys, k)
		}
		w.put("example.", dns.TypeDNSKEY, 0, z.sign(t, "", keys...), nil)
		good := z.signed(t, "", "www.example. 300 IN A 192.0.2.1")
		many := good[:1:1]
		for i := range 100 {
			bad := dns.Copy(good[1]).(*dns.RRSIG)
			bad.Expiration -= uint32(i + 1)
			bad.KeyTag = keys[i%len(keys)].(*dns.DNSKEY).KeyTag()
			many = append(many, bad)
		}
		w.hostile(t, "KeyTrap "+dns.AlgorithmToString[a], "", "www.example.", a, message(t, "www.example.", dns.TypeA, 0, many, nil))
	}
}

// KeyTrap among the keys that a DS record may speak for, of which the right one comes last.
func TestKeyTrapForDS(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	var keys []dns.RR
	for i := range 6 {
		b, err := base64.StdEncoding.DecodeString(z.key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[4*i:], []byte{b[4*i+2], b[4*i+3], b[4*i], b[4*i+1]}) // a tag is a sum of words
		k := dns.Copy(z.key).(*dns.DNSKEY)
		k.PublicKey = base64.StdEncoding.EncodeToString(b)
		if k.KeyTag() != z.key.KeyTag() {
			t.Fatalf("tag %d, want %d", k.KeyTag(), z.key.KeyTag())
		}
		keys = append(keys, k)
	}
	keys = append(keys, z.key)
	w.put("example.", dns.TypeDNSKEY, 0, z.sign(t, "", keys...), nil)
	good := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), nil)
	w.hostile(t, "keys of one tag", "keys_per_tag", "www.example.", dns.ED25519, good)
	w.put("example.", dns.TypeDNSKEY, 0, z.sign(t, "", keys[5:]...), nil) // the second one is looked at
	if v := w.judge("www.example.", dns.TypeA, good); v.Status != Secure {
		t.Errorf("of two keys: %v %d %q", v.Status, v.Code, v.Text)
	}
}

// A chain of zones in each of which the good signature comes last, and one check after the other is spent.
func TestManyBadSignatures(t *testing.T) {
	for _, a := range []uint8{dns.ECDSAP384SHA384, dns.ED448} {
		t.Run(dns.AlgorithmToString[a], func(t *testing.T) { manyBadSignatures(t, a) })
	}
}

func manyBadSignatures(t *testing.T, algorithm uint8) {
	w, _, parent := lab(t, algorithm)
	spoiled := func(g *signer, set ...dns.RR) []dns.RR {
		all := g.sign(t, "", set...)
		sig := all[len(all)-1].(*dns.RRSIG)
		for i := range 7 {
			bad := dns.Copy(sig).(*dns.RRSIG)
			bad.Expiration -= uint32(i + 1)
			all = append(all[:len(set):len(set)], append([]dns.RR{bad}, all[len(set):]...)...)
		}
		return all
	}
	name := "example."
	for range 12 {
		name = "a." + name
		child := newSigner(t, name, algorithm)
		ds := child.key.ToDS(dns.SHA256)
		ds.Hdr = header(name, dns.TypeDS)
		w.put(name, dns.TypeDS, 0, spoiled(parent, ds), nil)
		w.put(name, dns.TypeDNSKEY, 0, spoiled(child, child.key), nil)
		parent = child
	}
	rr, err := dns.NewRR("www." + name + " 300 IN A 192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	w.hostile(t, "bad signatures", "checks", "www."+name, algorithm, message(t, "www."+name, dns.TypeA, 0, parent.sign(t, "", rr), nil))
}

// NSEC3 closest encloser (CVE-2023-50868): each of many labels is hashed many times.
func TestEncloserBomb(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	var ns []dns.RR
	for _, n := range []string{"example.", "b.example.", "*.example."} {
		ns = append(ns, z.signed(t, "", near(n, 50, 0, n == "example.", "A RRSIG"))...)
	}
	name := strings.Repeat("a.", 110) + "b.example."
	w.hostile(t, "encloser bomb", "nsec3_hashes", name, dns.ED25519, message(t, name, dns.TypeA, 3, nil, join(z.signed(t, "", soa), ns)))
}

// Many NSEC3 records in a denial, DS records of which none matches, and RRsets for ANY.
func TestManyRecords(t *testing.T) {
	w, root, z := lab(t, dns.ED25519)
	var ns []dns.RR
	for i := range 30 {
		ns = append(ns, z.signed(t, "", near(fmt.Sprintf("n%d.example.", i), 1, 0, false, "A RRSIG"))...)
	}
	w.hostile(t, "NSEC3 records", "nsec3_records", "x.example.", dns.ED25519, message(t, "x.example.", dns.TypeA, 3, nil, ns))

	var all []dns.RR
	for i := range 40 {
		all = append(all, z.signed(t, "", fmt.Sprintf("example. 300 IN TYPE%d \\# 1 00", 65300+i))...)
	}
	w.hostile(t, "ANY", "rrsets_any", "example.", dns.ED25519, message(t, "example.", dns.TypeANY, 0, all, nil))

	var ds []dns.RR
	for i := range 250 {
		d := z.key.ToDS(dns.SHA256)
		d.Hdr, d.Digest = header("example.", dns.TypeDS), fmt.Sprintf("%064x", i)
		ds = append(ds, d)
	}
	w.put("example.", dns.TypeDS, 0, root.sign(t, "", ds...), nil)
	w.hostile(t, "DS records", "", "www.example.", dns.ED25519, message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), nil))
}
