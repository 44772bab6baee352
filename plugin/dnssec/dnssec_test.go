package dnssec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const zoneText = `$ORIGIN example.org.
$TTL 1800
@ IN SOA ns hostmaster 1 7200 3600 1209600 600
@ IN NS ns
@ IN MX 10 mail
ns 300 IN A 192.0.2.1
mail IN A 192.0.2.2
mail IN AAAA 2001:db8::2
mail IN CAA 0 issue "ca.example.net"
www IN CNAME mail
lost IN CNAME nothing
empty IN CNAME ns
away IN CNAME www.example.net.
*.w IN TXT "star"
a.ent IN TXT "deep"
plain IN NS ns.plain
ns.plain IN A 192.0.2.9
safe IN NS ns.plain
safe IN DS 1 13 2 3333333333333333333333333333333333333333333333333333333333333333
old IN DNAME new
x.new IN A 192.0.2.7
odd IN A 192.0.2.8
odd IN TYPE258 \# 2 0161
odd IN TYPE65280 \# 1 00
odd IN TYPE65281 \# 1 00
odd IN EUI48 00-00-5e-00-53-2a
`

// source is the file plugin with the zone above.
func source(t testing.TB) file.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "db.example.org")
	if err := os.WriteFile(name, []byte(zoneText), 0o600); err != nil {
		t.Fatal(err)
	}
	z := file.NewZone("example.org.", name)
	if err := z.Load(); err != nil {
		t.Fatal(err)
	}
	return file.File{Zones: file.Zones{Z: map[string]*file.Zone{"example.org.": z}, Names: []string{"example.org."}}}
}

// pair is a new key.
func pair(t testing.TB, zone string, algorithm uint8, bits int, flags uint16) *DNSKEY {
	t.Helper()
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: flags, Protocol: 3, Algorithm: algorithm}
	private, err := k.Generate(bits)
	if err != nil {
		t.Fatal(err)
	}
	key, err := newKey(k, strings.NewReader(k.PrivateKeyString(private)), "test")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serving(t testing.TB, next plugin.Handler, keys ...*DNSKEY) Dnssec {
	t.Helper()
	if len(keys) == 0 {
		keys = []*DNSKEY{pair(t, "example.org.", dns.ECDSAP256SHA256, 256, 257)}
	}
	return New([]string{"example.org."}, keys, splits(keys), next, cache.New[[]dns.RR](1000))
}

// ask asks with DO.
func ask(t testing.TB, h plugin.Handler, name string, qtype uint16, flags ...string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.SetEdns0(4096, !slices.Contains(flags, "nodo"))
	if slices.Contains(flags, "co") {
		m.IsEdns0().SetCo()
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rc, err := h.ServeDNS(t.Context(), rec, m); err != nil || !plugin.ClientWrite(rc) || rec.Msg == nil {
		t.Fatalf("%s %d: got %d, %v", name, qtype, rc, err)
	}
	return rec.Msg
}

// validate verifies all RRsets of answer and authority but the NS records and the glue of referrals.
// denies reports whether an NSEC record of the reply proves that the name has no such type.
// spoilt is m with one change that a validator has to see: of an address, a serial number, a bitmap and so on.
// Every kind of answer is signed so that a validator takes it, with any algorithm, and does not take it when it was changed.
func TestAnswers(t *testing.T) {
	next := source(t)
	for name, keys := range map[string][]*DNSKEY{
		"P-256":   {pair(t, "example.org.", dns.ECDSAP256SHA256, 256, 257)},
		"P-384":   {pair(t, "example.org.", dns.ECDSAP384SHA384, 384, 257)},
		"Ed25519": {pair(t, "example.org.", dns.ED25519, 256, 256)},
		"RSA":     {pair(t, "example.org.", dns.RSASHA256, 2048, 257)},
		"two":     {pair(t, "example.org.", dns.ED25519, 256, 257), pair(t, "example.org.", dns.ECDSAP256SHA256, 256, 257)},
	} {
		for _, compact := range []bool{false, true} {
			d := serving(t, next, keys...)
			d.compact = compact
			for _, tc := range []struct {
				name   string
				qtype  uint16
				denied string // the name whose type is denied
			}{
				{"mail.example.org.", dns.TypeA, ""},
				{"example.org.", dns.TypeSOA, ""},
				{"example.org.", dns.TypeMX, ""},
				{"example.org.", dns.TypeDNSKEY, ""},
				{"www.example.org.", dns.TypeA, ""},
				{"www.example.org.", dns.TypeCNAME, ""},
				{"away.example.org.", dns.TypeA, ""},
				{"x.w.example.org.", dns.TypeTXT, ""},
				{"x.old.example.org.", dns.TypeA, ""},
				{"mail.example.org.", dns.TypeTXT, "mail.example.org."},
				{"mail.example.org.", dns.TypeNSEC, "mail.example.org. not SRV"},
				{"example.org.", dns.TypeTXT, "example.org."},
				{"x.w.example.org.", dns.TypeA, "x.w.example.org."},
				{"ent.example.org.", dns.TypeTXT, "ent.example.org."},
				{"nothing.example.org.", dns.TypeA, "nothing.example.org."},
				{"NoThing.example.org.", dns.TypeA, "nothing.example.org."},
				{"*nothing.example.org.", dns.TypeA, "*nothing.example.org."},
				{"*.example.org.", dns.TypeA, "*.example.org."},
				{"lost.example.org.", dns.TypeA, "nothing.example.org."},
				{"empty.example.org.", dns.TypeAAAA, "ns.example.org."},
				{"www.plain.example.org.", dns.TypeA, "plain.example.org. DS"},
				{"plain.example.org.", dns.TypeDS, "plain.example.org."},
				{"www.safe.example.org.", dns.TypeA, ""},
				{"safe.example.org.", dns.TypeDS, ""},
			} {
				what := fmt.Sprintf("%s, compact %t: %s %s", name, compact, tc.name, dns.TypeToString[tc.qtype])
				m := ask(t, d, tc.name, tc.qtype)
				if err := validate(m, keys, time.Now()); err != nil {
					t.Errorf("%s: %v\n%v", what, err, m)
				}
				if owner, other, _ := strings.Cut(tc.denied, " "); owner != "" && !(compact && strings.Contains(other, "SRV")) {
					qtype := tc.qtype
					if other == "DS" {
						qtype = dns.TypeDS
					} else if other != "" {
						continue
					}
					if err := denies(m, owner, qtype); err != nil || m.Rcode != 0 {
						t.Errorf("%s: rcode %d, %v", what, m.Rcode, err)
					}
				}
				if m = m.Copy(); spoilt(m) && validate(m, keys, time.Now()) == nil {
					t.Errorf("%s: the validator did not see what was changed:\n%v", what, m)
				}
				if m := ask(t, d, tc.name, tc.qtype, "nodo"); tc.qtype != dns.TypeDNSKEY && hasSignatures(m) {
					t.Errorf("%s: signed without DO", what)
				}
			}
		}
	}
}

// bitmapOf is the types of the only NSEC record of a reply.
func TestBitmaps(t *testing.T) {
	d := serving(t, source(t))
	c := d
	c.compact = true
	const rest = "LOC SRV CERT SSHFP RRSIG NSEC TLSA HIP OPENPGPKEY SPF"
	for _, tc := range []struct {
		name          string
		qtype         uint16
		lies, compact string
	}{
		{"mail.example.org.", dns.TypeTXT, "A HINFO AAAA " + rest, "A AAAA RRSIG NSEC CAA"},
		{"mail.example.org.", dns.TypeNSEC, "A HINFO TXT AAAA " + rest, "A AAAA RRSIG NSEC CAA"},
		{"nothing.example.org.", dns.TypeMX, "A HINFO TXT AAAA " + rest, "RRSIG NSEC NXNAME"},
		{"ent.example.org.", dns.TypeA, "HINFO TXT AAAA " + rest, "RRSIG NSEC"},
		{"example.org.", dns.TypeA, "NS SOA HINFO MX TXT AAAA LOC SRV CERT SSHFP RRSIG NSEC DNSKEY TLSA HIP OPENPGPKEY SPF", "NS SOA MX RRSIG NSEC DNSKEY"},
		{"plain.example.org.", dns.TypeDS, "NS RRSIG NSEC", "NS RRSIG NSEC"},
		{"plain.example.org.", dns.TypeA, "NS RRSIG NSEC", "NS RRSIG NSEC"},
		{"www.plain.example.org.", dns.TypeA, "NS RRSIG NSEC", "NS RRSIG NSEC"},
		{"mail.example.org.", dns.TypeDS, "A HINFO TXT AAAA " + rest, "A AAAA RRSIG NSEC CAA"}, // which is no cut
		{"www.example.org.", dns.TypeTXT, "A HINFO AAAA " + rest, "A AAAA RRSIG NSEC CAA"},     // of mail
		{"odd.example.org.", dns.TypeAAAA, "A HINFO TXT " + rest, "A RRSIG NSEC EUI48 AVC TYPE65280 TYPE65281"},
		{"odd.example.org.", 65282, "A HINFO TXT AAAA " + rest, "A RRSIG NSEC EUI48 AVC TYPE65280 TYPE65281"},
	} {
		if got := bitmapOf(ask(t, d, tc.name, tc.qtype)); got != tc.lies {
			t.Errorf("%s %s: got %s, want %s", tc.name, dns.TypeToString[tc.qtype], got, tc.lies)
		}
		if got := bitmapOf(ask(t, c, tc.name, tc.qtype)); got != tc.compact {
			t.Errorf("compact, %s %s: got %s, want %s", tc.name, dns.TypeToString[tc.qtype], got, tc.compact)
		}
	}
}

// Plugins above may change a reply in place: the next one is not made of the same bitmap.
func TestBitmapsAreNotShared(t *testing.T) {
	d := serving(t, source(t))
	for _, tc := range []struct {
		name  string
		qtype uint16
	}{
		{"plain.example.org.", dns.TypeA},
		{"plain.example.org.", dns.TypeDS},
		{"mail.example.org.", dns.TypeNSEC},
		{"example.org.", dns.TypeRRSIG},
		{"mail.example.org.", dns.TypeTXT},
	} {
		m := ask(t, d, tc.name, tc.qtype)
		want := bitmapOf(m)
		for _, rr := range slices.Concat(m.Answer, m.Ns) {
			if n, ok := rr.(*dns.NSEC); ok {
				clear(n.TypeBitMap)
			}
		}
		if got := bitmapOf(ask(t, d, tc.name, tc.qtype)); got != want {
			t.Errorf("%s %s: got %s, before %s", tc.name, dns.TypeToString[tc.qtype], got, want)
		}
	}
}

// With CO the rcode stays, unless a cache would give it to others (RFC 9824 §5).
func TestCompactRcodes(t *testing.T) {
	d := serving(t, source(t))
	cached := false
	d.keepsRcodes = func() bool { return !cached }
	if m := ask(t, d, "nothing.example.org.", dns.TypeA, "co"); m.Rcode != dns.RcodeSuccess {
		t.Errorf("black lies: got %v", m)
	}
	d.compact = true
	for _, tc := range []struct {
		flag   string
		cached bool
		want   int
	}{{"", false, 0}, {"co", false, dns.RcodeNameError}, {"co", true, 0}} {
		cached = tc.cached
		if m := ask(t, d, "nothing.example.org.", dns.TypeA, tc.flag); m.Rcode != tc.want || bitmapOf(m) != "RRSIG NSEC NXNAME" {
			t.Errorf("%v: got %v", tc, m)
		}
	}
	if m := ask(t, d, "mail.example.org.", dns.TypeNXNAME); m.Rcode != dns.RcodeFormatError || m.IsEdns0().Option[0].(*dns.EDNS0_EDE).InfoCode != 30 {
		t.Errorf("NXNAME: got %v", m)
	}
}

func TestSplitKeys(t *testing.T) {
	ksk, zsk := pair(t, "example.org.", dns.ECDSAP256SHA256, 256, 257), pair(t, "example.org.", dns.ECDSAP256SHA256, 256, 256)
	d := serving(t, source(t), ksk, zsk)
	for qtype, want := range map[uint16]uint16{dns.TypeDNSKEY: ksk.tag, dns.TypeSOA: zsk.tag} {
		n := 0
		for _, rr := range ask(t, d, "example.org.", qtype).Answer {
			if sig, ok := rr.(*dns.RRSIG); ok {
				n++
				if sig.KeyTag != want {
					t.Errorf("%s is signed by %d", dns.TypeToString[qtype], sig.KeyTag)
				}
			}
		}
		if n != 1 {
			t.Errorf("%s: %d signatures", dns.TypeToString[qtype], n)
		}
	}
	if splits([]*DNSKEY{ksk}) || splits([]*DNSKEY{zsk, zsk}) {
		t.Error("keys of one kind are split")
	}
}

// What passes as it is, and what does not.
func TestPasses(t *testing.T) {
	key := pair(t, "example.org.", dns.ED25519, 256, 257)
	answer := func(rrs ...string) plugin.Handler {
		return test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			m := new(dns.Msg).SetReply(r)
			for _, text := range rrs {
				rr, err := dns.NewRR(text)
				if err != nil {
					return dns.RcodeServerFailure, err
				}
				m.Answer = append(m.Answer, rr)
			}
			return 0, w.WriteMsg(m)
		})
	}
	a := "www.example.org. 60 IN A 192.0.2.1"
	if m := ask(t, serving(t, answer(a), key), "www.example.org.", dns.TypeA); len(m.Answer) != 2 {
		t.Errorf("not signed: %v", m)
	}
	for what, d := range map[string]Dnssec{
		"signed below": serving(t, answer(a, "www.example.org. 60 IN RRSIG A 15 3 60 20450101000000 20200101000000 1 example.org. AAAA"), key),
		"without keys": New([]string{"example.org."}, nil, false, answer(a), cache.New[[]dns.RR](10)),
		"another zone": New([]string{"example.net."}, []*DNSKEY{key}, false, answer(a), cache.New[[]dns.RR](10)),
	} {
		m := ask(t, d, "www.example.org.", dns.TypeA)
		n := 0
		for _, rr := range m.Answer {
			if sig, ok := rr.(*dns.RRSIG); ok && sig.KeyTag == key.tag {
				n++
			}
		}
		if n > 0 {
			t.Errorf("%s: signed: %v", what, m)
		}
	}
	// DS records belong to the zone above, which is another one's.
	if m := ask(t, serving(t, answer("example.org. 60 IN DS 1 13 2 33"), key), "example.org.", dns.TypeDS); len(m.Answer) != 1 {
		t.Errorf("signed for the zone above: %v", m)
	}
	both := New([]string{"org.", "example.org."}, []*DNSKEY{key}, false, answer("example.org. 60 IN DS 1 13 2 33"), cache.New[[]dns.RR](10))
	if m := ask(t, both, "example.org.", dns.TypeDS); len(m.Answer) != 2 || m.Answer[1].(*dns.RRSIG).SignerName != "org." {
		t.Errorf("not signed by the zone above: %v", m)
	}
}

// What a plugin wrote may be kept by it.
func TestMessageStays(t *testing.T) {
	m := new(dns.Msg).SetQuestion("nothing.example.org.", dns.TypeA)
	m.Response, m.Rcode = true, dns.RcodeNameError
	soa, _ := dns.NewRR("example.org. 60 IN SOA ns.example.org. hostmaster.example.org. 1 2 3 4 5")
	m.Ns = []dns.RR{soa}
	before := m.String()
	signed := serving(t, nil).Sign(request.Request{Req: m, W: &test.ResponseWriter{}}, time.Now(), "")
	if m.String() != before || len(signed.Ns) != 4 || signed.Rcode != 0 || signed.Ns[2].Header().Ttl != 5 {
		t.Errorf("%v became %v, signed %v", before, m, signed)
	}
}

func TestLanes(t *testing.T) {
	d := serving(t, source(t))
	for _, tc := range []struct {
		name  string
		qtype uint16
		do    bool
		want  wire.Outcome
	}{
		{"mail.example.org.", dns.TypeA, false, wire.Done},
		{"mail.example.org.", dns.TypeA, true, wire.Unpack},
		{"MAIL.example.ORG.", dns.TypeA, true, wire.Unpack},
		{"example.org.", dns.TypeDNSKEY, false, wire.Unpack},
	} {
		m := new(dns.Msg).SetQuestion(tc.name, tc.qtype)
		m.SetEdns0(1232, tc.do)
		packet, _ := m.Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		w.Reset(make([]byte, 1232))
		if got := d.ServeWire(t.Context(), &w, &q); got != tc.want {
			t.Errorf("%v: got %v", tc, got)
		}
	}
	m := new(dns.Msg).SetQuestion("www.example.net.", dns.TypeA)
	m.SetEdns0(1232, true)
	packet, _ := m.Pack()
	var q wire.Query
	var w wire.Reply
	q.Parse(packet)
	w.Reset(make([]byte, 1232))
	d.Next = nil
	if got := d.ServeWire(t.Context(), &w, &q); got != wire.Done || !w.Failed() {
		t.Errorf("another zone: got %v", got)
	}
}

// Names at the limits have successors that come behind them.
func TestSuccessors(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := label + "." + label + "." + label + "."
	for _, name := range []string{".", "example.org.", "*.example.org.", `\255.example.org.`, label + ".example.org.", strings.Repeat(`\255`, 63) + ".example.org.",
		long + strings.Repeat("b", 61) + ".", long + strings.Repeat("b", 60) + ".", long + strings.Repeat("b", 59) + ".", long + strings.Repeat(`\255`, 61) + ".",
		`@.` + long + strings.Repeat("b", 59) + ".", strings.Repeat("@", 63) + "." + label + "." + label + "." + strings.Repeat("b", 61) + "."} {
		low, err := wire.LowerName(name)
		if err != nil {
			t.Fatal(name, err)
		}
		for what, next := range map[string]string{"successor": successor(name), "beyond": beyond(name)} {
			b, err := wire.LowerName(next)
			if name == "." && what == "beyond" {
				continue
			}
			if err != nil || wire.Compare(low, b) >= 0 {
				t.Errorf("%s of %s is %s (%v)", what, name, next, err)
			}
		}
	}
}
