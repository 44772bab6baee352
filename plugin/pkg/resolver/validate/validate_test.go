package validate

import (
	"crypto"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// lab is a root, the zone example., and what tests change of both.
func lab(t testing.TB, algorithm uint8) (w *world, root, zone *signer) {
	root, zone = newSigner(t, ".", dns.ECDSAP256SHA256), newSigner(t, "example.", algorithm)
	w = newWorld(t, root)
	w.child(root, zone)
	return w, root, zone
}

const soa = "example. 3600 IN SOA ns.example. host.example. 1 2 3 4 5"

func join(all ...[]dns.RR) (rrs []dns.RR) {
	for _, a := range all {
		rrs = append(rrs, a...)
	}
	return rrs
}

func TestAlgorithms(t *testing.T) {
	for _, a := range []uint8{dns.RSASHA256, dns.RSASHA512, dns.ECDSAP256SHA256, dns.ECDSAP384SHA384, dns.ED25519, dns.ED448} {
		w, _, z := lab(t, a)
		rrs := z.signed(t, "", "WWW.example. 300 IN MX 5 Mail.Example.", "www.example. 300 IN MX 1 a.example.")
		m := message(t, "www.example.", dns.TypeMX, 0, rrs, nil)
		v := w.judge("www.example.", dns.TypeMX, m)
		w.want(dns.AlgorithmToString[a], v, Secure, 0)
		if want := 2 + 2*parseKey(rdataOf(t, z.key)).weight(); v.Checks != want { // DNSKEY, DS, DNSKEY, MX
			t.Errorf("algorithm %d: %d signatures computed, want %d", a, v.Checks, want)
		}
		rrs[0].(*dns.MX).Preference++
		w.want("changed", w.judge("www.example.", dns.TypeMX, message(t, "www.example.", dns.TypeMX, 0, rrs, nil)), Bogus, 6)
	}
	w, _, z := lab(t, dns.RSASHA1)
	m := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), nil)
	w.want("RSASHA1", w.judge("www.example.", dns.TypeA, m), Insecure, 1)
	w.conf.Algorithms = DefaultAlgorithms(true)
	w.want("RSASHA1 validated", w.judge("www.example.", dns.TypeA, m), Secure, 0)
}

// Each fault has a code of its own, and one good signature is enough.
func TestFaultsOfSignatures(t *testing.T) {
	w, root, z := lab(t, dns.ECDSAP256SHA256)
	const rr = "www.example. 300 IN A 192.0.2.1"
	ask := func(rrs []dns.RR) *Verdict {
		return w.judge("www.example.", dns.TypeA, message(t, "www.example.", dns.TypeA, 0, rrs, nil))
	}
	day := 24 * time.Hour
	at := func(from, to time.Duration) []dns.RR {
		c := *z
		c.from, c.to = testNow.Add(from), testNow.Add(to)
		return c.signed(t, "", rr)
	}
	good := z.signed(t, "", rr)
	w.noDS(z, "www.example.", "www.example. 300 IN NSEC z.example. A RRSIG NSEC")
	w.want("good", ask(good), Secure, 0)
	w.want("no signature", ask(good[:1]), Bogus, dns.ExtendedErrorCodeRRSIGsMissing)
	w.want("expired", ask(at(-9*day, -2*day)), Bogus, dns.ExtendedErrorCodeSignatureExpired)
	w.want("expired within skew", ask(at(-9*day, -time.Hour)), Secure, 0)
	w.want("future", ask(at(2*day, 9*day)), Bogus, dns.ExtendedErrorCodeSignatureNotYetValid)
	w.want("upside down", ask(at(day, -day)), Bogus, dns.ExtendedErrorCodeSignatureExpiredBeforeValid)
	w.want("of a sibling", ask(newSigner(t, "sibling.", 13).signed(t, "", rr)), Bogus, dns.ExtendedErrorCodeDNSBogus)
	up := root.signed(t, "", rr)
	mixed := append(z.signed(t, "", rr)[:1], up[1])
	w.conf.Memory = known{rrset.MustName("example."): {kind: zone, Expires: testNow.Add(time.Hour)}}
	w.want("of the parent", ask(mixed), Bogus, 6)
	w.conf.Memory = nil
	other := newSigner(t, "example.", dns.ECDSAP256SHA256)
	w.want("of another key", ask(other.signed(t, "", rr)), Bogus, 6)
	few := z.signed(t, "", rr)
	few[1].(*dns.RRSIG).Labels = 0
	w.want("too few labels", ask(few), Bogus, 6)
	w.want("with a bad one beside", ask(append(z.signed(t, "", rr), few[1])), Secure, 0)
	revoked := *z.key
	revoked.Flags |= 0x80
	rz := &signer{"example.", &revoked, z.priv, z.from, z.to}
	w.child(root, rz)
	w.want("revoked key", ask(rz.signed(t, "", rr)), Bogus, dns.ExtendedErrorCodeDNSKEYMissing)
	unfit := *z.key
	unfit.Flags = 1
	uz := &signer{"example.", &unfit, z.priv, z.from, z.to}
	w.child(root, uz)
	w.want("no zone key", ask(uz.signed(t, "", rr)), Bogus, dns.ExtendedErrorCodeNoZoneKeyBitSet)
}

// A signature has no more labels than the owner, whatever the zone has signed (RFC 4035 §5.3.1).
func TestTooManyLabels(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	w.noDS(z, "www.example.", "www.example. 300 IN NSEC z.example. A RRSIG NSEC")
	for _, labels := range []uint8{2, 3} {
		all := z.signed(t, "", "www.example. 300 IN A 192.0.2.1")
		g := all[1].(*dns.RRSIG)
		g.Labels = labels
		set := message(t, "www.example.", dns.TypeA, 0, all, nil).Section[rrset.Answer][0]
		s, ok := signature{}, false
		set.EachSig(func(r string) bool { s, ok = parseSig(r); return true })
		b, err := z.priv.Sign(nil, signedData(nil, set, &s, rdatas(set)), crypto.Hash(0))
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		g.Signature = base64.StdEncoding.EncodeToString(b)
		v := w.judge("www.example.", dns.TypeA, message(t, "www.example.", dns.TypeA, 0, all, nil))
		if labels == 2 {
			w.want("as many", v, Secure, 0)
		} else {
			w.want("one more", v, Bogus, dns.ExtendedErrorCodeDNSBogus)
		}
	}
}

func TestTTLIsThatOfTheSignature(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	z.to = testNow.Add(100 * time.Second)
	m := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), nil)
	v := w.judge("www.example.", dns.TypeA, m)
	if v.Status != Secure || !slices.Contains(v.Proof, Proven{m.Section[rrset.Answer][0], 100}) {
		t.Errorf("%v, %v, want secure, a TTL of 100", v.Status, v.Proof)
	}
}

// A zone is unsigned only if its parent says so, and nothing else does.
func TestChain(t *testing.T) {
	w, root, z := lab(t, dns.ECDSAP256SHA256)
	a := func(name string, rrs ...dns.RR) *Verdict {
		return w.judge(name, dns.TypeA, message(t, name, dns.TypeA, 0, rrs, nil))
	}
	plainA, _ := dns.NewRR("www.un.example. 300 IN A 192.0.2.1")
	w.noDS(z, "un.example.", "un.example. 300 IN NSEC v.example. NS RRSIG NSEC", soa)
	w.want("unsigned delegation", a("www.un.example.", plainA), Insecure, 0)
	w.noDS(z, "un.example.", "un.example. 300 IN NSEC v.example. A RRSIG NSEC", soa)
	w.noDS(z, "www.un.example.", "www.un.example. 300 IN NSEC z.example. A RRSIG NSEC")
	w.want("no delegation", a("www.un.example.", plainA), Bogus, dns.ExtendedErrorCodeRRSIGsMissing)
	for what, denial := range map[string]string{
		"DS there": "un.example. 300 IN NSEC v.example. NS DS RRSIG NSEC", "child's": "un.example. 300 IN NSEC v.example. NS SOA RRSIG NSEC",
		"other name": "a.example. 300 IN NSEC b.example. NS RRSIG NSEC",
	} {
		w.noDS(z, "un.example.", denial, soa)
		w.want(what, a("www.un.example.", plainA), Bogus, dns.ExtendedErrorCodeNSECMissing)
	}
	w.noDS(newSigner(t, "example.", 13), "un.example.", "un.example. 300 IN NSEC v.example. NS RRSIG NSEC")
	w.want("forged denial", a("www.un.example.", plainA), Bogus, 6)
	w.put("un.example.", dns.TypeDS, dns.RcodeServerFailure, nil, nil)
	w.want("no answer", a("www.un.example.", plainA), Bogus, dns.ExtendedErrorCodeDNSSECIndeterminate)
	wild := z.signed(t, "un.example.", "*.example. 300 IN NSEC v.example. NS RRSIG NSEC")
	w.put("un.example.", dns.TypeDS, 0, nil, wild)
	if v := a("www.un.example.", plainA); v.Status != Bogus {
		t.Errorf("a wildcard's NSEC makes a zone %v", v.Status)
	}

	good := z.signed(t, "", "www.example. 300 IN A 192.0.2.1")
	wrong := newSigner(t, "example.", 13)
	w.child(root, wrong)
	w.keys(z)
	w.want("wrong DS", a("www.example.", good...), Bogus, dns.ExtendedErrorCodeDNSKEYMissing)
	for _, c := range []struct {
		what      string
		kind, alg uint8
		status    Status
		code      uint16
	}{{"unknown digest", 3, 13, Insecure, 2}, {"unknown algorithm", 2, 200, Insecure, 1}} {
		ds := z.key.ToDS(dns.SHA256)
		ds.Hdr, ds.DigestType, ds.Algorithm = header("example.", dns.TypeDS), c.kind, c.alg
		w.put("example.", dns.TypeDS, 0, root.sign(t, "", ds), nil)
		w.want(c.what, a("www.example.", good...), c.status, c.code)
	}
	w.conf.Anchors = map[string]*Anchor{rrset.MustName("other."): w.conf.Anchors[rrset.Root]}
	w.want("no anchor", a("www.example.", good...), Indeterminate, 0)
	w.conf.Anchors = map[string]*Anchor{rrset.MustName("example."): {Keys: []string{rdataOf(t, z.key)}}}
	w.want("island", a("www.example.", good...), Secure, 0)
	w.conf.Negative = func(name string, _ time.Time) bool { return name == rrset.MustName("example.") }
	w.want("negative anchor", a("www.example.", good...), Insecure, negativeAnchor)
	w.conf.Negative = func(name string, _ time.Time) bool { return name == rrset.Root }
	w.want("negative anchor above an island", a("www.example.", good...), Insecure, negativeAnchor)
	w.conf.Negative = nil
	w.noDS(z, "www.example.", "www.example. 300 IN NSEC z.example. A RRSIG NSEC")
	w.want("nothing is said", a("www.example."), Bogus, dns.ExtendedErrorCodeNSECMissing)
}

// What a resolver answers itself is insecure, and so is what lies below it, unless there is an anchor closer.
func TestInside(t *testing.T) {
	w, _, _ := lab(t, dns.ED25519)
	low := newSigner(t, "low.home.", dns.ED25519)
	w.keys(low)
	w.put("home.", dns.TypeDS, dns.RcodeSuccess, nil, nil)
	w.conf.Anchors[rrset.MustName("low.home.")] = &Anchor{Keys: []string{rdataOf(t, low.key)}}
	w.conf.Inside = func(zone string) bool { return zone == rrset.MustName("home.") }
	soa, _ := dns.NewRR("home. 300 IN SOA localhost. nobody.invalid. 1 2 3 4 5")
	denied := func(name string, typ uint16, rcode int) *Verdict {
		return w.judge(name, typ, message(t, name, typ, rcode, nil, []dns.RR{soa}))
	}
	w.want("a name", denied("a.home.", dns.TypeA, dns.RcodeNameError), Insecure, 0)
	w.want("the zone", denied("home.", dns.TypeA, dns.RcodeSuccess), Insecure, 0)
	w.want("its DS", denied("home.", dns.TypeDS, dns.RcodeSuccess), Insecure, 0)
	a, _ := dns.NewRR("x.corp.home. 300 IN A 192.0.2.1")
	w.want("below", w.judge("x.corp.home.", dns.TypeA, message(t, "x.corp.home.", dns.TypeA, 0, []dns.RR{a}, nil)), Insecure, 0)
	signed := low.signed(t, "", "x.low.home. 300 IN A 192.0.2.1")
	w.want("an anchor", w.judge("x.low.home.", dns.TypeA, message(t, "x.low.home.", dns.TypeA, 0, signed, nil)), Secure, 0)
	w.want("unsigned there", w.judge("x.low.home.", dns.TypeA, message(t, "x.low.home.", dns.TypeA, 0, signed[:1], nil)), Bogus,
		dns.ExtendedErrorCodeDNSSECIndeterminate)
	w.want("elsewhere", denied("a.example.", dns.TypeA, dns.RcodeNameError), Bogus, dns.ExtendedErrorCodeDNSSECIndeterminate)
}

// Each row is a way to deny, or one to deny what exists.
func TestDenialByNSEC(t *testing.T) {
	w, _, z := lab(t, dns.ECDSAP256SHA256)
	for _, c := range []struct {
		what   string
		name   string
		typ    uint16
		rcode  int
		nsec   []string
		status Status
		got    int
	}{
		{"nodata", "a.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC"}, Secure, 0},
		{"ANY where there is data", "a.example.", dns.TypeANY, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC"}, Bogus, 0},
		{"ANY where there is data, called NXDOMAIN", "a.example.", dns.TypeANY, 3, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC"}, Bogus, 3},
		{"ANY where there is data of a high number", "a.example.", dns.TypeANY, 0, []string{"a.example. 300 IN NSEC c.example. RRSIG NSEC TYPE65280"}, Bogus, 0},
		{"ANY of an empty non-terminal, compact", "a.example.", dns.TypeANY, 0, []string{"a.example. 300 IN NSEC \\000.a.example. RRSIG NSEC"}, Secure, 0},
		{"ANY, black lie", "a.example.", dns.TypeANY, 0, []string{"a.example. 300 IN NSEC \\000.a.example. A TXT RRSIG NSEC"}, Insecure, 0},
		{"ANY, black lie, called NXDOMAIN", "a.example.", dns.TypeANY, 3, []string{"a.example. 300 IN NSEC \\000.a.example. A TXT RRSIG NSEC"}, Bogus, 3},
		{"ANY, black lie of a cut", "a.example.", dns.TypeANY, 0, []string{"a.example. 300 IN NSEC \\000.a.example. NS DS RRSIG NSEC"}, Bogus, 0},
		{"ANY, black lie with an alias", "a.example.", dns.TypeANY, 0, []string{"a.example. 300 IN NSEC \\000.a.example. CNAME RRSIG NSEC"}, Bogus, 0},
		{"TXT, black lie of another type", "a.example.", dns.TypeTXT, 0, []string{"a.example. 300 IN NSEC \\000.a.example. A TXT RRSIG NSEC"}, Bogus, 0},
		{"ANY of a wildcard with data", "b.example.", dns.TypeANY, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC", "*.example. 300 IN NSEC a.example. A RRSIG NSEC"}, Bogus, 0},
		{"nodata called YXDOMAIN", "a.example.", dns.TypeMX, dns.RcodeYXDomain, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC"}, Secure, 0},
		{"type is there", "a.example.", dns.TypeA, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC"}, Bogus, 0},
		{"alias is there", "a.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC c.example. CNAME RRSIG NSEC"}, Bogus, 0},
		{"parent side", "a.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC c.example. NS DS RRSIG NSEC"}, Bogus, 0},
		{"unsigned cut", "a.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC c.example. NS RRSIG NSEC"}, Insecure, 0},
		{"parent side, below", "x.a.example.", dns.TypeMX, 3, []string{"a.example. 300 IN NSEC c.example. NS DS RRSIG NSEC", "example. 300 IN NSEC a.example. SOA NS"}, Bogus, 3},
		{"below an unsigned cut", "x.a.example.", dns.TypeMX, 3, []string{"a.example. 300 IN NSEC c.example. NS RRSIG NSEC", "example. 300 IN NSEC a.example. SOA NS"}, Insecure, 3},
		{"DS at an unsigned cut", "a.example.", dns.TypeDS, 0, []string{"a.example. 300 IN NSEC c.example. NS RRSIG NSEC"}, Secure, 0},
		{"DS below an unsigned cut", "x.a.example.", dns.TypeDS, 0, []string{"a.example. 300 IN NSEC c.example. NS RRSIG NSEC"}, Insecure, 0},
		{"DS below a signed cut", "x.a.example.", dns.TypeDS, 0, []string{"a.example. 300 IN NSEC c.example. NS DS RRSIG NSEC"}, Bogus, 0},
		{"below DNAME", "x.a.example.", dns.TypeMX, 3, []string{"a.example. 300 IN NSEC c.example. DNAME RRSIG NSEC", "example. 300 IN NSEC a.example. SOA NS"}, Bogus, 3},
		{"ENT", "b.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC x.b.example. A RRSIG NSEC"}, Secure, 0},
		{"ENT called NXDOMAIN", "b.example.", dns.TypeMX, 3, []string{"a.example. 300 IN NSEC x.b.example. A RRSIG NSEC"}, Secure, 0},
		{"nxdomain", "b.example.", dns.TypeA, 3, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC", "example. 300 IN NSEC a.example. SOA NS RRSIG NSEC"}, Secure, 3},
		{"no wildcard denial", "b.example.", dns.TypeA, 3, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC"}, Bogus, 3},
		{"nxdomain called nodata", "b.example.", dns.TypeA, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC", "example. 300 IN NSEC a.example. SOA NS RRSIG NSEC"}, Bogus, 0},
		{"last", "z.example.", dns.TypeA, 3, []string{"y.example. 300 IN NSEC example. A RRSIG NSEC", "example. 300 IN NSEC a.example. SOA NS RRSIG NSEC"}, Secure, 3},
		{"next outside", "z.example.", dns.TypeA, 3, []string{"y.example. 300 IN NSEC zz. A RRSIG NSEC", "example. 300 IN NSEC a.example. SOA NS RRSIG NSEC"}, Bogus, 3},
		{"wildcard nodata", "b.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC", "*.example. 300 IN NSEC a.example. A RRSIG NSEC"}, Secure, 0},
		{"empty wildcard", "b.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC", "example. 300 IN NSEC x.*.example. SOA NS RRSIG NSEC"}, Secure, 0},
		{"empty wildcard, not covered", "b.example.", dns.TypeMX, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC", "*.example. 300 IN NSEC x.*.example. MX RRSIG NSEC"}, Bogus, 0},
		{"wildcard has it", "b.example.", dns.TypeA, 0, []string{"a.example. 300 IN NSEC c.example. A RRSIG NSEC", "*.example. 300 IN NSEC a.example. A RRSIG NSEC"}, Bogus, 0},
		{"compact", "b.example.", dns.TypeA, 3, []string{"b.example. 300 IN NSEC \\000.b.example. RRSIG NSEC TYPE128"}, Secure, 3},
		{"black lie", "b.example.", dns.TypeA, 0, []string{"b.example. 300 IN NSEC \\000.b.example. RRSIG NSEC"}, Secure, 0},
		{"compact without NXNAME", "b.example.", dns.TypeMX, 3, []string{"b.example. 300 IN NSEC \\000.b.example. RRSIG NSEC"}, Secure, 0},
		{"nothing", "b.example.", dns.TypeA, 3, nil, Bogus, 3},
	} {
		ns := z.signed(t, "", soa)
		for _, x := range c.nsec {
			ns = append(ns, z.signed(t, "", x)...)
		}
		v := w.judge(c.name, c.typ, message(t, c.name, c.typ, c.rcode, nil, ns))
		if v.Status != c.status || v.Rcode != c.got {
			t.Errorf("%s: %v rcode %d %q, want %v %d", c.what, v.Status, v.Rcode, v.Text, c.status, c.got)
		}
	}
}

// What a wildcard made holds only where nothing closer exists.
func TestWildcardsAndAliases(t *testing.T) {
	w, root, z := lab(t, dns.ECDSAP256SHA256)
	gap := z.signed(t, "", "a.example. 300 IN NSEC c.example. A RRSIG NSEC")
	wild := func() []dns.RR { return z.signed(t, "b.example.", "*.example. 300 IN A 192.0.2.1") }
	ask := func(name string, rcode int, answer, ns []dns.RR) *Verdict {
		return w.judge(name, dns.TypeA, message(t, name, dns.TypeA, rcode, answer, ns))
	}
	w.want("wildcard", ask("b.example.", 0, wild(), gap), Secure, 0)
	w.want("wildcard, no proof", ask("b.example.", 0, wild(), nil), Bogus, dns.ExtendedErrorCodeNSECMissing)
	w.want("other gap", ask("b.example.", 0, wild(), z.signed(t, "", "c.example. 300 IN NSEC d.example. A RRSIG NSEC")), Bogus, 12)
	for _, typ := range []uint16{dns.TypeNSEC, dns.TypeANY} { // RFC 4592 §4.7
		made := z.signed(t, "b.example.", "*.example. 300 IN NSEC a.example. A RRSIG NSEC")
		if v := w.judge("b.example.", typ, message(t, "b.example.", typ, 0, made, gap)); v.Status != Secure {
			t.Errorf("wildcard's denial, asked for by %s: %v %q", dns.Type(typ), v.Status, v.Text)
		}
		if v := w.judge("b.example.", typ, message(t, "b.example.", typ, 0, made, nil)); v.Status != Bogus {
			t.Errorf("wildcard's denial, which proves itself: %v", v.Status)
		}
	}
	www := z.signed(t, "", "www.example. 300 IN A 192.0.2.1")
	alias := func() []dns.RR { return z.signed(t, "b.example.", "*.example. 300 IN CNAME www.example.") }
	w.want("wildcard alias", ask("b.example.", 0, join(alias(), www), gap), Secure, 0)
	w.want("wildcard alias, no proof", ask("b.example.", 0, join(alias(), www), nil), Bogus, 12)
	w.want("rcode of an answer", ask("www.example.", 3, www, nil), Secure, 0)
	if v := ask("www.example.", 3, www, nil); v.Rcode != 0 {
		t.Errorf("an answer with NXDOMAIN stays one")
	}
	dname := z.signed(t, "", "d.example. 300 IN DNAME e.example.")
	made, _ := dns.NewRR("x.d.example. 300 IN CNAME x.e.example.")
	lie, _ := dns.NewRR("x.d.example. 300 IN CNAME www.example.")
	end := z.signed(t, "", "x.e.example. 300 IN A 192.0.2.1")
	w.want("DNAME", ask("x.d.example.", 0, join(dname, []dns.RR{made}, end), nil), Secure, 0)
	for _, typ := range []uint16{dns.TypeCNAME, dns.TypeANY} {
		v := w.judge("x.d.example.", typ, message(t, "x.d.example.", typ, 0, join(dname, []dns.RR{made}), nil))
		w.want("the alias itself, "+dns.Type(typ).String(), v, Secure, 0)
	}
	w.noDS(z, "x.d.example.", "d.example. 300 IN NSEC f.example. DNAME RRSIG NSEC")
	if v := w.judge("x.d.example.", dns.TypeCNAME, message(t, "x.d.example.", dns.TypeCNAME, 0, join(dname, []dns.RR{lie}), nil)); v.Status != Bogus {
		t.Errorf("the alias itself, which its DNAME does not make: %v", v.Status)
	}
	if v := ask("x.d.example.", 0, join(dname, []dns.RR{lie}, www), nil); v.Status != Bogus {
		t.Errorf("an alias that its DNAME does not make: %v", v.Status)
	}
	w.noDS(root, "test.", "test. 300 IN NSEC u. NS RRSIG NSEC")
	far, _ := dns.NewRR("www.test. 300 IN A 192.0.2.1")
	out := z.signed(t, "", "out.example. 300 IN CNAME www.test.")
	w.want("alias into an unsigned zone", ask("out.example.", 0, join(out, []dns.RR{far}), nil), Insecure, 0)
	w.want("YXDOMAIN of nothing", ask("b.example.", dns.RcodeYXDomain, nil, z.signed(t, "", soa)), Bogus, 12)
	w.want("alias to nowhere", ask("out.example.", 0, out, nil), Insecure, 0)
	loop := z.signed(t, "", "loop.example. 300 IN CNAME loop.example.")
	w.want("alias to itself", ask("loop.example.", 0, loop, nil), Bogus, 0)
	ns, _ := dns.NewRR("example. 300 IN NS ns.example.")
	m := message(t, "www.example.", dns.TypeA, 0, www, []dns.RR{ns})
	if v := w.judge("www.example.", dns.TypeA, m); v.Status != Secure || !slices.Contains(v.Unproven, m.Section[rrset.Authority][0]) {
		t.Errorf("NS beside an answer: %v %v", v.Status, v.Unproven)
	}
}

// A zone above a closer anchor says nothing of the names below that.
func TestCloserAnchor(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	low := newSigner(t, "low.example.", dns.ED25519)
	w.keys(low)
	w.conf.Anchors[rrset.MustName("low.example.")] = &Anchor{Keys: []string{rdataOf(t, low.key)}}
	w.noDS(low, "a.low.example.", "a.low.example. 300 IN NSEC low.example. A RRSIG NSEC")
	for g, want := range map[*signer]Status{z: Bogus, low: Secure} {
		ns := g.signed(t, "", "a.low.example. 300 IN NSEC low.example. A RRSIG NSEC")
		v := w.judge("a.low.example.", dns.TypeMX, message(t, "a.low.example.", dns.TypeMX, 0, nil, ns))
		if v.Status != want {
			t.Errorf("denied by %s: %v %q, want %v", g.zone, v.Status, v.Text, want)
		}
		rrs := g.signed(t, "", "a.low.example. 300 IN A 192.0.2.1")
		v = w.judge("a.low.example.", dns.TypeA, message(t, "a.low.example.", dns.TypeA, 0, rrs, nil))
		if v.Status != want {
			t.Errorf("signed by %s: %v %q, want %v", g.zone, v.Status, v.Text, want)
		}
	}
}

// known is a Memory of nodes that were there before.
type known map[string]*Node

func (k known) Node(name string, _ time.Time) *Node { return k[name] }
func (k known) KeepNode(string, *Node)              {}
func (k known) Check(Sum) (h Held, found bool)      { return h, false }
func (k known) KeepCheck(Sum, Held)                 {}

// A SOA record beside an answer proves nothing, and nothing depends on it: that of a zone that is not signed takes no AD
// away, and one that does not hold withholds no answer. In a denial it has to be good.
func TestSOABesideAnAnswer(t *testing.T) {
	w, _, z := lab(t, dns.ECDSAP256SHA256)
	w.noDS(z, "www.example.", "www.example. 300 IN NSEC z.example. A RRSIG NSEC")
	w.noDS(z, "low.example.", "low.example. 300 IN NSEC www.example. NS RRSIG NSEC")
	answer := z.signed(t, "", "www.example. 300 IN A 192.0.2.1")
	soa := func(zone string) dns.RR {
		rr, err := dns.NewRR(zone + " 300 IN SOA ns.example. h.example. 1 2 3 4 5")
		if err != nil {
			t.Fatal(err)
		}
		return rr
	}
	for what, zone := range map[string]string{"of an unsigned zone": "low.example.", "without signature": "example."} {
		v := w.judge("www.example.", dns.TypeA, message(t, "www.example.", dns.TypeA, 0, answer, []dns.RR{soa(zone)}))
		if w.want(what, v, Secure, 0); len(v.Unproven) != 1 || v.Unproven[0].Type != dns.TypeSOA {
			t.Errorf("%s: %v is left out", what, v.Unproven)
		}
	}
	denial := append(z.signed(t, "", "www.example. 300 IN NSEC z.example. A RRSIG NSEC"), soa("example."))
	proof := append(z.signed(t, "", "www.example. 300 IN NSEC z.example. A RRSIG NSEC"), z.signed(t, "", soa("example.").String())...)
	v := w.judge("www.example.", dns.TypeMX, message(t, "www.example.", dns.TypeMX, 0, nil, append(proof, soa("low.example."))))
	if w.want("of another zone, beside a denial", v, Secure, 0); len(v.Unproven) != 1 {
		t.Errorf("%v is left out", v.Unproven)
	}
	for _, all := range [][]dns.RR{append(proof[:len(proof):len(proof)], soa(".")), append([]dns.RR{soa(".")}, proof...)} {
		v = w.judge("www.example.", dns.TypeMX, message(t, "www.example.", dns.TypeMX, 0, nil, all))
		if w.want("of a zone above, beside that of the denial", v, Secure, 0); len(v.Unproven) != 1 || v.Unproven[0].Name != rrset.Root {
			t.Errorf("%v is left out", v.Unproven)
		}
	}
	w.want("of a denial", w.judge("www.example.", dns.TypeMX, message(t, "www.example.", dns.TypeMX, 0, nil, denial)), Bogus,
		dns.ExtendedErrorCodeRRSIGsMissing)
}

// What nobody has asked for, and is bogus, is left out of a reply that is not signed, as it is of one that is. What an alias
// leads to was asked for.
func TestUnaskedInInsecure(t *testing.T) {
	w, _, z := lab(t, dns.ECDSAP256SHA256)
	w.noDS(z, "www.example.", "www.example. 300 IN NSEC z.example. A RRSIG NSEC")
	w.noDS(z, "low.example.", "low.example. 300 IN NSEC www.example. NS RRSIG NSEC")
	record := func(text string) dns.RR {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		return rr
	}
	own, beside := record("a.low.example. 300 IN A 192.0.2.1"), record("www.example. 300 IN A 192.0.2.66")
	v := w.judge("a.low.example.", dns.TypeA, message(t, "a.low.example.", dns.TypeA, 0, []dns.RR{own, beside}, nil))
	if w.want("beside an answer", v, Insecure, 0); len(v.Unasked) != 1 || v.Unasked[0].Name != rrset.MustName("www.example.") {
		t.Errorf("%v is left out", v.Unasked)
	}
	alias := record("a.low.example. 300 IN CNAME www.example.")
	w.want("what an alias leads to", w.judge("a.low.example.", dns.TypeA, message(t, "a.low.example.", dns.TypeA, 0, []dns.RR{alias, beside}, nil)),
		Bogus, dns.ExtendedErrorCodeRRSIGsMissing)
}
