package validate

import (
	"crypto"
	"encoding/base64"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/cloudflare/circl/sign/ed448"
	"github.com/miekg/dns"
)

var testNow = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// signer is a zone with one key.
type signer struct {
	zone string
	key  *dns.DNSKEY
	priv crypto.Signer
	from time.Time
	to   time.Time
}

func newSigner(tb testing.TB, zone string, algorithm uint8) *signer {
	tb.Helper()
	k := &dns.DNSKEY{Hdr: header(zone, dns.TypeDNSKEY), Flags: 257, Protocol: 3, Algorithm: algorithm}
	from, to := testNow.Add(-24*time.Hour), testNow.Add(10*24*time.Hour)
	if algorithm == dns.ED448 {
		public, private, err := ed448.GenerateKey(nil)
		if err != nil {
			tb.Fatal(err)
		}
		k.PublicKey = base64.StdEncoding.EncodeToString(public)
		return &signer{zone, k, ed448Signer{private}, from, to}
	}
	bits := map[uint8]int{dns.RSASHA256: 1024, dns.RSASHA512: 1024, dns.RSASHA1: 1024, dns.ECDSAP384SHA384: 384}[algorithm]
	if bits == 0 {
		bits = 256
	}
	p, err := k.Generate(bits)
	if err != nil {
		tb.Fatal(err)
	}
	return &signer{zone, k, p.(crypto.Signer), from, to}
}

func header(name string, typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET, Ttl: 3600}
}

// signed is records of one RRset with their signature. owner other than empty
// is where it is expanded to.
func (g *signer) signed(tb testing.TB, owner string, texts ...string) (all []dns.RR) {
	tb.Helper()
	var set []dns.RR
	for _, x := range texts {
		rr, err := dns.NewRR(x)
		if err != nil {
			tb.Fatal(err)
		}
		set = append(set, rr)
	}
	return g.sign(tb, owner, set...)
}

func (g *signer) sign(tb testing.TB, owner string, set ...dns.RR) []dns.RR {
	tb.Helper()
	sig := &dns.RRSIG{
		Hdr: header(set[0].Header().Name, dns.TypeRRSIG), Algorithm: g.key.Algorithm, KeyTag: g.key.KeyTag(), SignerName: g.zone,
		Inception: uint32(g.from.Unix()), Expiration: uint32(g.to.Unix()),
	}
	if sig.Algorithm == dns.ED448 {
		sig.Algorithm = dns.ED25519
	}
	if err := sig.Sign(g.priv, set); err != nil {
		tb.Fatal(err)
	}
	sig.Algorithm = g.key.Algorithm
	all := append(append([]dns.RR(nil), set...), sig)
	if owner != "" {
		for _, rr := range all {
			rr.Header().Name = owner
		}
	}
	return all
}

// message is a reply, packed and read as the product does it.
func message(tb testing.TB, name string, typ uint16, rcode int, answer, authority []dns.RR) *rrset.Message {
	tb.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, typ)
	m.Response, m.Rcode, m.Answer, m.Ns = true, rcode, answer, authority
	b, err := m.Pack()
	if err != nil {
		tb.Fatal(err)
	}
	r, err := rrset.Parse(b)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// world is what can be asked, by name and type.
type world struct {
	tb      testing.TB
	conf    Config
	replies map[Question]*rrset.Message
	asked   []Question
	told    []string // the zones whose servers have answered
	alone   bool     // see Alone
}

func newWorld(tb testing.TB, root *signer) *world {
	w := &world{tb: tb, replies: map[Question]*rrset.Message{}}
	w.conf = Config{
		Anchors:    map[string]*Anchor{rrset.MustName(root.zone): {DS: []string{rdataOf(tb, root.key.ToDS(dns.SHA256))}}},
		Algorithms: DefaultAlgorithms(false), Digests: DefaultDigests(), Iterations: 50, SkewLeast: time.Hour, SkewMost: 24 * time.Hour,
		BogusTTL: time.Minute, Budget: DefaultBudget(),
	}
	w.keys(root)
	return w
}

func rdataOf(tb testing.TB, rr dns.RR) string {
	b := make([]byte, 4096)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		tb.Fatal(err)
	}
	l := nameLen(string(b))
	return string(b[l+10 : n])
}

func (w *world) put(name string, typ uint16, rcode int, answer, authority []dns.RR) *rrset.Message {
	m := message(w.tb, name, typ, rcode, answer, authority)
	w.replies[Question{rrset.MustName(name), typ}] = m
	return m
}

func (w *world) keys(g *signer) {
	w.put(g.zone, dns.TypeDNSKEY, 0, g.sign(w.tb, "", g.key), nil)
}

// child has a parent sign a zone.
func (w *world) child(parent, g *signer) {
	ds := g.key.ToDS(dns.SHA256)
	ds.Hdr = header(g.zone, dns.TypeDS)
	w.put(g.zone, dns.TypeDS, 0, parent.sign(w.tb, "", ds), nil)
	w.keys(g)
}

// noDS has a zone deny the DS records of a name.
func (w *world) noDS(zone *signer, name string, denial ...string) {
	var ns []dns.RR
	for _, d := range denial {
		ns = append(ns, zone.signed(w.tb, "", d)...)
	}
	w.put(name, dns.TypeDS, 0, nil, ns)
}

// judge is the Verdict for a reply.
func (w *world) judge(name string, typ uint16, m *rrset.Message) *Verdict {
	w.tb.Helper()
	t := New(&w.conf, Question{rrset.MustName(name), typ}, m, testNow)
	for _, zone := range w.told {
		t.Told(rrset.MustName(zone))
	}
	if w.alone {
		t.Alone()
	}
	w.asked = nil
	for range 200 {
		missing := t.Step()
		if len(missing) == 0 {
			return t.Verdict()
		}
		for _, q := range missing {
			w.asked = append(w.asked, q)
			t.Give(q, w.replies[q])
		}
	}
	w.tb.Fatal("it has no end")
	return nil
}

func (w *world) want(what string, v *Verdict, s Status, code uint16) {
	w.tb.Helper()
	if v.Status != s || v.Told && v.Code != code || !v.Told && code != 0 {
		w.tb.Errorf("%s: %v %d %q, want %v %d", what, v.Status, v.Code, v.Text, s, code)
	}
}
