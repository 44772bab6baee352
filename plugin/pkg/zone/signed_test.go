package zone

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// signed is a zone with NSEC records in a complete chain; signatures are only shaped like some.
const signedZone = `@ SOA ns1 hostmaster 7 7200 3600 1209600 60
@ RRSIG SOA 13 2 300 20450101000000 20200101000000 1 example.org. c29h
@ NS ns1
@ RRSIG NS 13 2 300 20450101000000 20200101000000 1 example.org. bnM=
@ NSEC *.c.example.org. NS SOA RRSIG NSEC
@ RRSIG NSEC 13 2 300 20450101000000 20200101000000 1 example.org. bnNlYw==
*.c CNAME www
*.c RRSIG CNAME 13 3 300 20450101000000 20200101000000 1 example.org. Y2Nj
*.c NSEC d.example.org. CNAME RRSIG NSEC
*.c RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 example.org. Y25z
d DNAME c
d RRSIG DNAME 13 3 300 20450101000000 20200101000000 1 example.org. ZGRk
d NSEC a.ent.example.org. DNAME RRSIG NSEC
d RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 example.org. ZG5z
a.ent TXT "x"
a.ent RRSIG TXT 13 4 300 20450101000000 20200101000000 1 example.org. ZW50
a.ent NSEC insecure.example.org. TXT RRSIG NSEC
a.ent RRSIG NSEC 13 4 300 20450101000000 20200101000000 1 example.org. ZW5z
insecure NS ns.insecure
insecure NSEC ns1.example.org. NS RRSIG NSEC
insecure RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 example.org. aW5z
ns.insecure A 192.0.2.40
ns1 A 192.0.2.1
ns1 RRSIG A 13 3 300 20450101000000 20200101000000 1 example.org. bnMx
ns1 NSEC secure.example.org. A RRSIG NSEC
ns1 RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 example.org. bjFu
secure NS ns.secure
secure DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000
secure RRSIG DS 13 3 300 20450101000000 20200101000000 1 example.org. ZHNz
secure NSEC *.w.example.org. NS DS RRSIG NSEC
secure RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 example.org. c2Vj
ns.secure A 192.0.2.50
*.w TXT "any"
*.w RRSIG TXT 13 3 300 20450101000000 20200101000000 1 example.org. d3d3
*.w NSEC www.example.org. TXT RRSIG NSEC
*.w RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 example.org. d25z
www A 192.0.2.80
www RRSIG A 13 3 300 20450101000000 20200101000000 1 example.org. d3dB
www NSEC example.org. A RRSIG NSEC
www RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 example.org. d3dO
`

// brief asks with DO and writes the reply down: rcode, AA, and for each section owners and types, the type covered
// behind RRSIG.
func brief(t testing.TB, z *Zone, name, typ string) string {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, dns.StringToType[typ])
	m.SetEdns0(4096, true)
	p, _ := m.Pack()
	var q wire.Query
	if !q.Parse(p) {
		if err := q.SetMsg(m, wire.Peer{Limit: 65535}); err != nil {
			t.Fatal(err)
		}
	}
	var w wire.Reply
	w.Reset(make([]byte, 0, 4096))
	var a Answerer
	if r := a.Answer(z, &w, &q); r == External {
		a.Alone()
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
		t.Fatalf("%s %s: %v", name, typ, err)
	}
	reply.Extra = reply.Extra[:len(reply.Extra)-1]
	reply.Compress = false
	if plain, err := reply.Pack(); err != nil || w.PlainLen() != len(plain) {
		t.Errorf("%s %s: plain length %d, want %d (%v)", name, typ, w.PlainLen(), len(plain), err)
	}
	out := dns.RcodeToString[reply.Rcode]
	if reply.Authoritative {
		out += " aa"
	}
	seen := map[string]bool{}
	for i, rrs := range [][]dns.RR{reply.Answer, reply.Ns, reply.Extra} {
		if len(rrs) > 0 {
			out += []string{" an:", " ns:", " ar:"}[i]
		}
		for _, rr := range rrs {
			if seen[rr.String()] {
				t.Errorf("%s %s: twice: %s", name, typ, rr)
			}
			seen[rr.String()] = true
			owner := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(rr.Header().Name), "example.org."), ".")
			if owner == "" {
				owner = "@"
			}
			if sig, ok := rr.(*dns.RRSIG); ok {
				out += fmt.Sprintf(" %s/RRSIG(%s)", owner, dns.TypeToString[sig.TypeCovered])
			} else {
				out += fmt.Sprintf(" %s/%s", owner, dns.TypeToString[rr.Header().Rrtype])
			}
		}
	}
	return out
}

func TestProofs(t *testing.T) {
	z := build(t, "example.org.", signedZone)
	soa := " ns: @/SOA @/RRSIG(SOA)"
	ns := " ns: @/NS @/RRSIG(NS)"
	nsec := func(owners ...string) (s string) {
		for _, o := range owners {
			s += " " + o + "/NSEC " + o + "/RRSIG(NSEC)"
		}
		return s
	}
	for _, tc := range []struct{ name, typ, want string }{
		{"www.example.org.", "A", "NOERROR aa an: www/A www/RRSIG(A)" + ns},
		{"example.org.", "NS", "NOERROR aa an: @/NS @/RRSIG(NS) ar: ns1/A ns1/RRSIG(A)"},
		// NODATA (RFC 4035 §3.1.3.1).
		{"www.example.org.", "MX", "NOERROR aa" + soa + nsec("www")},
		{"ent.example.org.", "TXT", "NOERROR aa" + soa + nsec("d")},
		{"c.example.org.", "A", "NOERROR aa" + soa + nsec("@")},
		{"d.example.org.", "A", "NOERROR aa" + soa + nsec("d")},
		{"www.example.org.", "ANY", "NOERROR aa an: www/A www/RRSIG(A) www/NSEC www/RRSIG(NSEC)" + ns},
		{"x.c.example.org.", "ANY", "NOERROR aa an: x.c/CNAME x.c/RRSIG(CNAME) x.c/NSEC x.c/RRSIG(NSEC)" + ns + nsec("*.c")},
		{"ent.example.org.", "ANY", "NOERROR aa" + soa + nsec("d")},
		// NXDOMAIN (§3.1.3.2): the wildcard that is denied is the one at the closest encloser.
		{"x.example.org.", "A", "NXDOMAIN aa" + soa + nsec("www", "@")},
		{"0.example.org.", "A", "NXDOMAIN aa" + soa + nsec("@")},
		{"x.ent.example.org.", "A", "NXDOMAIN aa" + soa + nsec("a.ent", "d")},
		{"x.a.ent.example.org.", "A", "NXDOMAIN aa" + soa + nsec("a.ent")},
		// Wildcards (§3.1.3.3, §3.1.3.4).
		{"x.w.example.org.", "TXT", "NOERROR aa an: x.w/TXT x.w/RRSIG(TXT)" + ns + nsec("*.w")},
		{"*.w.example.org.", "TXT", "NOERROR aa an: *.w/TXT *.w/RRSIG(TXT)" + ns},
		{"x.w.example.org.", "A", "NOERROR aa" + soa + nsec("*.w")},
		{"!.w.example.org.", "A", "NOERROR aa" + soa + nsec("*.w", "secure")},
		{"x.c.example.org.", "A", "NOERROR aa an: x.c/CNAME x.c/RRSIG(CNAME) www/A www/RRSIG(A)" + ns + nsec("*.c")},
		{"x.c.example.org.", "MX", "NOERROR aa an: x.c/CNAME x.c/RRSIG(CNAME)" + soa + nsec("*.c", "www")},
		// DNAME: the CNAME that it makes is not signed.
		{"x.d.example.org.", "A", "NOERROR aa an: d/DNAME d/RRSIG(DNAME) x.d/CNAME x.c/CNAME x.c/RRSIG(CNAME) www/A www/RRSIG(A)" + ns + nsec("*.c")},
		// Referrals (§3.1.4) and DS at the parent's side.
		{"x.secure.example.org.", "A", "NOERROR ns: secure/NS secure/DS secure/RRSIG(DS) ar: ns.secure/A"},
		{"x.insecure.example.org.", "A", "NOERROR ns: insecure/NS" + nsec("insecure") + " ar: ns.insecure/A"},
		{"secure.example.org.", "DS", "NOERROR aa an: secure/DS secure/RRSIG(DS)" + ns},
		{"insecure.example.org.", "DS", "NOERROR aa" + soa + nsec("insecure")},
		{"example.org.", "DS", "NOERROR aa" + soa + nsec("@")},
		// Asked for by name.
		{"www.example.org.", "NSEC", "NOERROR aa an: www/NSEC www/RRSIG(NSEC)" + ns},
		{"www.example.org.", "RRSIG", "NOERROR aa an: www/RRSIG(A) www/RRSIG(NSEC)" + ns},
		{"ent.example.org.", "RRSIG", "NOERROR aa" + soa + nsec("d")},
	} {
		if got := brief(t, z, tc.name, tc.typ); got != tc.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tc.name, tc.typ, got, tc.want)
		}
	}
}

func TestSignaturesOnlyForDO(t *testing.T) {
	z := build(t, "example.org.", signedZone)
	for _, tc := range []struct{ name, typ string }{{"www.example.org.", "A"}, {"x.example.org.", "A"}, {"x.w.example.org.", "TXT"}, {"x.insecure.example.org.", "A"}} {
		if _, got := answer(t, z, tc.name, tc.typ, false); strings.Contains(got, "RRSIG") || strings.Contains(got, "NSEC") {
			t.Errorf("%s %s without DO: %s", tc.name, tc.typ, got)
		}
	}
	if _, got := answer(t, z, "www.example.org.", "RRSIG", false); strings.Count(got, "an www.example.org. 300 IN RRSIG") != 2 {
		t.Errorf("RRSIG without DO: %s", got)
	}
}

// A signature of an RRset that is not there is kept, and seen by who asks for signatures.
func TestOrphanSignatures(t *testing.T) {
	z := build(t, "example.org.", apex+"x TXT a\nx RRSIG MX 13 3 300 20450101000000 20200101000000 1 example.org. bXgx\nx RRSIG MX 13 3 300 20450101000000 20200101000000 2 example.org. bXgy\n"+
		"x RRSIG TXT 13 3 300 20450101000000 20200101000000 1 example.org. dHh0\nx RRSIG CAA 13 3 300 20450101000000 20200101000000 1 example.org. Y2Fh\n")
	if got, want := brief(t, z, "x.example.org.", "RRSIG"), "NOERROR aa an: x/RRSIG(TXT) x/RRSIG(MX) x/RRSIG(MX) x/RRSIG(CAA) ns: @/NS @/NS"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got, want := brief(t, z, "x.example.org.", "TXT"), "NOERROR aa an: x/TXT x/RRSIG(TXT) ns: @/NS @/NS"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if z.Records() != 10 {
		t.Errorf("%d records", z.Records())
	}
}

// hash3 is the hash of a name with one more iteration and the salt aabb, computed straight from RFC 5155 §5.
func hash3(name string) string {
	in := append(wire.MustName(name), 0xaa, 0xbb)
	sum := sha1.Sum(in)
	sum = sha1.Sum(append(sum[:], 0xaa, 0xbb))
	return strings.ToLower(dns.HashName(name, dns.SHA1, 1, "aabb")) + " " + hex.EncodeToString(sum[:])
}

// nsec3Zone is the zone of some names with NSEC3 records for them, and for those below without-names with opt-out.
func nsec3Zone(t testing.TB, names []string, optOut bool) *Zone {
	text := "@ SOA ns1 hostmaster 7 7200 3600 1209600 60\n@ NS ns1\n@ NSEC3PARAM 1 0 1 aabb\nns1 A 192.0.2.1\na.ent TXT x\n*.w TXT any\ninsecure NS ns.insecure\nns.insecure A 192.0.2.4\n" +
		"secure NS ns.secure\nsecure DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\nns.secure A 192.0.2.5\n"
	var hashes []string
	for _, n := range names {
		h, _, _ := strings.Cut(hash3(n), " ")
		hashes = append(hashes, h)
	}
	flags := 0
	if optOut {
		flags = 1
	}
	for i, h := range hashes {
		next := ""
		for _, o := range hashes { // the smallest greater one, else the smallest
			if o > h && (next == "" || next <= h || o < next) || o <= h && (next == "" || next <= h && o < next) {
				next = o
			}
		}
		text += fmt.Sprintf("%s NSEC3 1 %d 1 aabb %s A\n%s RRSIG NSEC3 13 3 300 20450101000000 20200101000000 1 example.org. %s\n", h, flags, next, h, "AAA"+string(rune('A'+i)))
	}
	b := NewBuilder(wire.MustName("example.org"), t.Logf)
	b.AllowNSEC3()
	zp := dns.NewZoneParser(strings.NewReader("$TTL 300\n"+text), "example.org.", "db")
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	if err := zp.Err(); err != nil {
		t.Fatal(err)
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestNSEC3(t *testing.T) {
	if a, b, _ := strings.Cut(hash3("ns1.example.org."), " "); func() string { x, _ := hex.DecodeString(b); return hashEncoding.EncodeToString(x) }() != a {
		t.Fatal("the test's own hash is wrong")
	}
	names := []string{"example.org.", "ns1.example.org.", "ent.example.org.", "a.ent.example.org.", "w.example.org.", "*.w.example.org.", "insecure.example.org.", "secure.example.org."}
	z := nsec3Zone(t, names, false)
	hashes := map[string]string{}
	for _, n := range names {
		h, _, _ := strings.Cut(hash3(n), " ")
		hashes[h] = strings.TrimSuffix(strings.TrimSuffix(n, "example.org."), ".")
	}
	// covering is the name whose hash is before that of another.
	covering := func(name string) string {
		h, _, _ := strings.Cut(hash3(name), " ")
		best, last := "", ""
		for o := range hashes {
			if o < h && o > best {
				best = o
			}
			if o > last {
				last = o
			}
		}
		if best == "" {
			best = last
		}
		return hashes[best]
	}
	for _, tc := range []struct {
		name, typ, want string
		match, cover    []string
	}{
		{"ns1.example.org.", "MX", "NOERROR aa ns: @/SOA", []string{"ns1.example.org."}, nil},
		{"ent.example.org.", "A", "NOERROR aa ns: @/SOA", []string{"ent.example.org."}, nil},
		{"x.example.org.", "A", "NXDOMAIN aa ns: @/SOA", []string{"example.org."}, []string{"x.example.org.", "*.example.org."}},
		{"y.x.ent.example.org.", "A", "NXDOMAIN aa ns: @/SOA", []string{"ent.example.org."}, []string{"x.ent.example.org.", "*.ent.example.org."}},
		{"y.x.w.example.org.", "TXT", "NOERROR aa an: y.x.w/TXT ns: @/NS", nil, []string{"x.w.example.org."}},
		{"y.x.w.example.org.", "A", "NOERROR aa ns: @/SOA", []string{"w.example.org.", "*.w.example.org."}, []string{"x.w.example.org."}},
		{"x.insecure.example.org.", "A", "NOERROR ns: insecure/NS", []string{"insecure.example.org."}, nil},
		{"insecure.example.org.", "DS", "NOERROR aa ns: @/SOA", []string{"insecure.example.org."}, nil},
		{"x.secure.example.org.", "A", "NOERROR ns: secure/NS secure/DS", nil, nil},
	} {
		want := map[string]bool{}
		for _, n := range tc.match {
			want[strings.TrimSuffix(strings.TrimSuffix(n, "example.org."), ".")] = true
		}
		for _, n := range tc.cover {
			want[covering(n)] = true
		}
		got := brief(t, z, tc.name, tc.typ)
		main, _, _ := strings.Cut(got, " ar:")
		for h, n := range hashes {
			proof := " " + h + "/NSEC3 " + h + "/RRSIG(NSEC3)"
			if has := strings.Contains(main, proof); has != want[n] {
				t.Errorf("%s %s: NSEC3 of %q: %v, want %v", tc.name, tc.typ, n, has, want[n])
			}
			main = strings.Replace(main, proof, "", 1)
		}
		if main != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.name, tc.typ, main, tc.want)
		}
	}
	// The owner of an NSEC3 record is no name of the zone (RFC 5155 §7.2.8).
	for h := range hashes {
		if got := brief(t, z, h+".example.org.", "NSEC3"); !strings.HasPrefix(got, "NXDOMAIN") {
			t.Errorf("%s: %s", h, got)
		}
		break
	}
	if z.Names() != 10 {
		t.Errorf("%d names", z.Names())
	}
}

// With opt-out a delegation may have no NSEC3 record; then its closest provable encloser is shown (RFC 5155 §7.2.4,
// §7.2.7).
func TestNSEC3OptOut(t *testing.T) {
	z := nsec3Zone(t, []string{"example.org.", "ns1.example.org.", "secure.example.org."}, true)
	at, _, _ := strings.Cut(hash3("example.org."), " ")
	for _, tc := range []struct{ name, typ, want string }{
		{"x.insecure.example.org.", "A", "NOERROR ns: insecure/NS"},
		{"insecure.example.org.", "DS", "NOERROR aa ns: @/SOA"},
		{"ent.example.org.", "A", "NOERROR aa ns: @/SOA"},
	} {
		got := brief(t, z, tc.name, tc.typ)
		if !strings.HasPrefix(got, tc.want) || !strings.Contains(got, at+"/NSEC3") {
			t.Errorf("%s %s: %s", tc.name, tc.typ, got)
		}
	}
}

// What opt-out leaves out may be the closest encloser of a name: then the wildcard that is denied is the one below the closest
// provable encloser, for that is the one whose denial a validating resolver looks for (RFC 5155 §8.3, §8.4).
func TestNSEC3OptOutWildcard(t *testing.T) {
	hash := func(name string) string {
		h, _, _ := strings.Cut(hash3(name), " ")
		return h
	}
	names := []string{"example.org.", "ns1.example.org.", "secure.example.org.", "www.example.org."}
	covering := func(name string) (best string) { // none of those asked for is before the first
		for _, n := range names {
			if h := hash(n); h < hash(name) && h > best {
				best = h
			}
		}
		return best
	}
	wildcard := covering("*.example.org.")
	if others := []string{hash("example.org."), covering("ent.example.org."), covering("*.ent.example.org.")}; wildcard == "" || slices.Contains(others, wildcard) {
		t.Fatalf("%s covers the wildcard; %q show something else, too", wildcard, others)
	}
	got := brief(t, nsec3Zone(t, names, true), "x.ent.example.org.", "A")
	for _, h := range []string{hash("example.org."), covering("ent.example.org."), wildcard} {
		if !strings.HasPrefix(got, "NXDOMAIN") || !strings.Contains(got, h+"/NSEC3") {
			t.Errorf("without %s: %s", h, got)
		}
	}
}

func TestNSEC3Refused(t *testing.T) {
	for _, tc := range []struct{ params, want string }{
		{"@ NSEC3PARAM 1 0 151 -\n", "asks for 151 iterations, at most 150 are done"},
		{"@ NSEC3PARAM 2 0 1 -\n", "no usable NSEC3PARAM record"},
		{"", "no usable NSEC3PARAM record"},
	} {
		var warnings []string
		b := NewBuilder(wire.MustName("example.org"), func(f string, a ...any) { warnings = append(warnings, fmt.Sprintf(f, a...)) })
		b.AllowNSEC3()
		zp := dns.NewZoneParser(strings.NewReader("$TTL 5\n"+apex+tc.params+"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 1 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr A\n"), "example.org.", "db")
		for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
			if err := b.AddRR(rr); err != nil {
				t.Fatal(err)
			}
		}
		z, err := b.Build()
		if err != nil || !strings.Contains(strings.Join(warnings, "|"), tc.want) {
			t.Fatalf("%q: %v, %q", tc.params, err, warnings)
		}
		if got := brief(t, z, "x.example.org.", "A"); got != "NXDOMAIN aa ns: @/SOA" {
			t.Errorf("%q: %s", tc.params, got)
		}
	}
}
