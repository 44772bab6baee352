package validate

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"math/big"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// A reply that ends with an alias is completed by the reply for the target, and is as good as that.
func TestChase(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	alias := z.signed(t, "", "www.example. 300 IN CNAME host.example.")
	alone := message(t, "www.example.", dns.TypeA, 0, alias, nil)
	w.want("nobody answers for the target", w.judge("www.example.", dns.TypeA, alone), Bogus, 5)
	w.put("host.example.", dns.TypeA, 0, z.signed(t, "", "host.example. 300 IN A 192.0.2.1"), nil)
	v := w.judge("www.example.", dns.TypeA, alone)
	w.want("the target is signed", v, Secure, 0)
	if want := (Question{rrset.MustName("host.example."), dns.TypeA}); len(v.Chased) != 1 || v.Chased[0] != want {
		t.Errorf("chased %q", v.Chased)
	}
	w.put("host.example.", dns.TypeA, 0, z.signed(t, "", "host.example. 300 IN A 192.0.2.1")[:1], nil)
	w.noDS(z, "host.example.", "host.example. 300 IN NSEC i.example. A RRSIG NSEC")
	w.want("the target is not signed", w.judge("www.example.", dns.TypeA, alone), Bogus, 10)
	w.put("host.example.", dns.TypeA, 3, nil, join(z.signed(t, "", soa), z.signed(t, "", "example. 300 IN NSEC i.example. SOA NS RRSIG NSEC")))
	v = w.judge("www.example.", dns.TypeA, alone)
	if w.want("no target", v, Secure, 0); v.Rcode != 3 {
		t.Errorf("no target: rcode %d", v.Rcode)
	}
	// into an unsigned zone
	w.noDS(z, "sub.example.", "sub.example. 300 IN NSEC tub.example. NS RRSIG NSEC")
	out := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN CNAME host.sub.example."), nil)
	w.put("host.sub.example.", dns.TypeA, 0, z.signed(t, "", "host.sub.example. 300 IN A 192.0.2.1")[:1], nil)
	if v = w.judge("www.example.", dns.TypeA, out); v.Status != Insecure || len(v.Chased) != 1 {
		t.Errorf("into an unsigned zone: %v, %d targets", v.Finding, len(v.Chased))
	}
	w.alone = true
	if v = w.judge("www.example.", dns.TypeA, out); v.Status != Insecure || len(v.Chased) != 0 {
		t.Errorf("into an unsigned zone, without recursion: %v, %d targets", v.Finding, len(v.Chased))
	}
	w.alone = false
	w.put("host.sub.example.", dns.TypeA, dns.RcodeRefused, nil, nil)
	if v = w.judge("www.example.", dns.TypeA, out); v.Status != Insecure || v.Rcode != 0 || len(v.Chased) != 0 {
		t.Errorf("into an unsigned zone of others: %v, rcode %d, %d targets", v.Finding, v.Rcode, len(v.Chased))
	}
	whole := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN CNAME host.sub.example."), z.signed(t, "", "sub.example. 300 IN SOA a. b. 1 2 3 4 5")[:1])
	if v = w.judge("www.example.", dns.TypeA, whole); v.Status != Insecure || len(v.Chased) != 0 {
		t.Errorf("denied by an unsigned zone: %v, %d targets", v.Finding, len(v.Chased))
	}
	// what the reply lacks stands in that for the target, with the rest once more
	rest := z.signed(t, "", "end.example. 300 IN CNAME last.example.")
	w.put("mid.example.", dns.TypeA, 0, join(z.signed(t, "", "mid.example. 300 IN CNAME end.example."), rest, z.signed(t, "", "last.example. 300 IN A 192.0.2.1")), nil)
	gap := message(t, "www.example.", dns.TypeA, 0, join(z.signed(t, "", "www.example. 300 IN CNAME mid.example."), rest), nil)
	v = w.judge("www.example.", dns.TypeA, gap)
	if w.want("an alias is missing", v, Secure, 0); len(v.Unproven) > 0 {
		t.Errorf("an alias is missing: %s is left out", rrset.Text(v.Unproven[0].Name))
	}
	// each target leads on to the next, without end
	for i := range 30 {
		from, to := string(rune('a'+i%26))+".example.", string(rune('a'+(i+1)%26))+".example."
		w.put(from, dns.TypeA, 0, z.signed(t, "", from+" 300 IN CNAME "+to), nil)
	}
	m := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN CNAME a.example."), nil)
	if v = w.judge("www.example.", dns.TypeA, m); v.Status != Bogus || len(v.Chased) > mostChased {
		t.Errorf("a long chain: %v, %d targets", v.Finding, len(v.Chased))
	}
}

// The proof that a subzone is not signed may come with the reply: nobody is asked for it then.
func TestProofInReply(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	m := message(t, "www.sub.example.", dns.TypeA, 0, join(z.signed(t, "", "x.example. 300 IN A 192.0.2.1"))[:0],
		z.signed(t, "", "sub.example. 300 IN NSEC tub.example. NS RRSIG NSEC"))
	w.want("unsigned cut", w.judge("www.sub.example.", dns.TypeA, m), Insecure, 0)
	for _, q := range w.asked {
		if q.Type == dns.TypeDS && q.Name == rrset.MustName("sub.example.") {
			t.Error("the DS RRset was asked for")
		}
	}
	m = message(t, "www.sub.example.", dns.TypeA, 0, nil, z.signed(t, "", "sub.example. 300 IN NSEC tub.example. NS DS RRSIG NSEC"))
	w.want("signed cut", w.judge("www.sub.example.", dns.TypeA, m), Bogus, 12)
}

// Whoever configures an anchor of SHA-1 has its zone validated by it, but no zone below.
func TestOwnAlgorithm(t *testing.T) {
	root, z, sub := newSigner(t, ".", dns.ECDSAP256SHA256), newSigner(t, "example.", dns.RSASHA1), newSigner(t, "sub.example.", dns.RSASHA1)
	w := newWorld(t, root)
	w.keys(z)
	w.child(z, sub)
	name := rrset.MustName("example.")
	w.conf.Anchors[name] = &Anchor{DS: []string{rdataOf(t, z.key.ToDS(dns.SHA256))}}
	m := message(t, "www.example.", dns.TypeA, 0, z.signed(t, "", "www.example. 300 IN A 192.0.2.1"), nil)
	w.want("as by default", w.judge("www.example.", dns.TypeA, m), Insecure, 1)
	w.conf.Anchors[name].Own = map[uint8]bool{dns.RSASHA1: true}
	w.want("of its own", w.judge("www.example.", dns.TypeA, m), Secure, 0)
	m = message(t, "www.sub.example.", dns.TypeA, 0, sub.signed(t, "", "www.sub.example. 300 IN A 192.0.2.1"), nil)
	w.want("a zone below", w.judge("www.sub.example.", dns.TypeA, m), Insecure, 1)
}

// What a parent says of DS records where a chain of its own begins concerns nobody.
func TestSuperseded(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	m := message(t, "sub.example.", dns.TypeDS, 0, nil, nil)
	w.want("no anchor there", w.judge("sub.example.", dns.TypeDS, m), Bogus, 12)
	w.conf.Anchors[rrset.MustName("sub.example.")] = &Anchor{DS: []string{rdataOf(t, z.key.ToDS(dns.SHA256))}}
	w.want("an anchor above, too", w.judge("sub.example.", dns.TypeDS, m), Bogus, 12)
	w.conf.Anchors[rrset.Root].Builtin = true
	w.want("the one above is built in", w.judge("sub.example.", dns.TypeDS, m), Indeterminate, 0)
}

// Additional records that hold stay, others go; none decides.
func TestAdditional(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	q := new(dns.Msg).SetQuestion("example.", dns.TypeMX)
	q.Response, q.Answer = true, z.signed(t, "", "example. 300 IN MX 5 mail.example.")
	bad := z.signed(t, "", "bad.example. 300 IN A 192.0.2.1")
	bad[0].(*dns.A).A[3]++
	plain, err := dns.NewRR("plain.example. 300 IN A 192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	q.Extra = join(z.signed(t, "", "mail.example. 300 IN A 192.0.2.1"), bad, []dns.RR{plain})
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	m, err := rrset.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	v := w.judge("example.", dns.TypeMX, m)
	w.want("additional", v, Secure, 0)
	if len(v.Additional) != 1 {
		t.Errorf("%d RRsets, want the signed one", len(v.Additional))
	}
	for _, s := range v.Additional {
		if s.Name != rrset.MustName("mail.example.") {
			t.Errorf("%q stays", s.Name)
		}
	}
}

// The standard library does not verify by RSA keys of less than 1024 bits; those of RSA/SHA-1 may have 512.
func TestSmallRSA(t *testing.T) {
	e := big.NewInt(65537)
	var n, d *big.Int
	for d == nil {
		p, perr := rand.Prime(rand.Reader, 256)
		q, qerr := rand.Prime(rand.Reader, 256)
		if perr != nil || qerr != nil {
			t.Fatal(perr, qerr)
		}
		one := big.NewInt(1)
		n = new(big.Int).Mul(p, q)
		d = new(big.Int).ModInverse(e, new(big.Int).Mul(p.Sub(p, one), q.Sub(q, one)))
		if n.BitLen() != 512 {
			d = nil
		}
	}
	public, data := "\x03\x01\x00\x01"+string(n.Bytes()), []byte("signed")
	k := parseKey("\x01\x00\x03\x05" + public)
	if k == nil || k.public == nil {
		t.Fatal("the key is not read")
	}
	if k := parseKey("\x01\x00\x03\x08" + public); k.public != nil {
		t.Error("RSA/SHA-256 takes 512 bits")
	}
	sum := digest(crypto.SHA1, data)
	block := append([]byte("\x00\x01"), make([]byte, 64-3-15-20)...)
	for i := 2; i < len(block); i++ {
		block[i] = 0xff
	}
	block = append(append(append(block, 0), "\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14"...), sum...)
	sig := new(big.Int).Exp(new(big.Int).SetBytes(block), d, n).FillBytes(make([]byte, 64))
	if !k.verify(data, string(sig)) {
		t.Error("a good signature is refused")
	}
	for i := range sig {
		bad := append([]byte(nil), sig...)
		if bad[i] ^= 1; k.verify(data, string(bad)) {
			t.Fatalf("octet %d changed: taken", i)
		}
	}
	if k.verify([]byte("other"), string(sig)) || k.verify(data, string(sig[:63])) || k.verify(data, "\x00"+string(sig)) {
		t.Error("a bad signature is taken")
	}
	if _, ok := k.public.(*rsa.PublicKey); !ok {
		t.Errorf("%T", k.public)
	}
}
