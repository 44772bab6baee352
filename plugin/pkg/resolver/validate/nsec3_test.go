package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// near is an NSEC3 record of example. whose owner matches a name, or with
// around covers it.
func near(name string, iterations, flags int, around bool, types string) string {
	h := dns.HashName(name, dns.SHA1, uint16(iterations), "AABB")
	from, to := h, neighbour(h, 1)
	if around {
		from = neighbour(h, -1)
	}
	return fmt.Sprintf("%s.example. 300 IN NSEC3 1 %d %d AABB %s %s", strings.ToLower(from), flags, iterations, to, types)
}

// neighbour is the hash before or behind another.
func neighbour(h string, by int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
	b := []byte(h)
	for i := len(b) - 1; i >= 0; i-- {
		d := strings.IndexByte(digits, b[i]) + by
		b[i] = digits[(d+32)%32]
		if d >= 0 && d < 32 {
			break
		}
	}
	return string(b)
}

func TestDenialByNSEC3(t *testing.T) {
	w, _, z := lab(t, dns.ECDSAP256SHA256)
	match := func(name, types string) string { return near(name, 1, 0, false, types) }
	cover := func(name string) string { return near(name, 1, 0, true, "A RRSIG") }
	out := func(name string) string { return near(name, 1, 1, true, "A RRSIG") }
	apex := match("example.", "NS SOA RRSIG DNSKEY NSEC3PARAM")
	for _, c := range []struct {
		what   string
		name   string
		typ    uint16
		rcode  int
		nsec3  []string
		status Status
	}{
		{"nodata", "a.example.", dns.TypeMX, 0, []string{match("a.example.", "A RRSIG")}, Secure},
		{"type is there", "a.example.", dns.TypeA, 0, []string{match("a.example.", "A RRSIG")}, Bogus},
		{"alias is there", "a.example.", dns.TypeA, 0, []string{match("a.example.", "CNAME RRSIG")}, Bogus},
		{"what an alias has beside it", "a.example.", dns.TypeNSEC, 0, []string{match("a.example.", "CNAME RRSIG")}, Secure},
		{"parent side", "a.example.", dns.TypeMX, 0, []string{match("a.example.", "NS DS")}, Bogus},
		{"unsigned cut", "a.example.", dns.TypeMX, 0, []string{match("a.example.", "NS")}, Insecure},
		{"nxdomain", "a.b.example.", dns.TypeA, 3, []string{apex, cover("b.example."), cover("*.example.")}, Secure},
		{"no encloser", "a.b.example.", dns.TypeA, 3, []string{cover("b.example."), cover("*.example.")}, Bogus},
		{"no next closer", "a.b.example.", dns.TypeA, 3, []string{apex, cover("a.b.example."), cover("*.example.")}, Bogus},
		{"no wildcard", "a.b.example.", dns.TypeA, 3, []string{apex, cover("b.example.")}, Bogus},
		{"opt-out", "a.b.example.", dns.TypeA, 3, []string{apex, out("b.example."), cover("*.example.")}, Insecure},
		{"unknown flag", "a.b.example.", dns.TypeA, 3, []string{apex, near("b.example.", 1, 2, true, "A RRSIG"), cover("*.example.")}, Bogus},
		{"unknown hash", "a.b.example.", dns.TypeA, 3, []string{apex, strings.Replace(cover("b.example."), " NSEC3 1 ", " NSEC3 2 ", 1), cover("*.example.")}, Bogus},
		{"other salt", "a.b.example.", dns.TypeA, 3, []string{apex, strings.Replace(cover("b.example."), " AABB ", " BBAA ", 1), cover("*.example.")}, Bogus},
		{"encloser is a cut", "a.b.example.", dns.TypeA, 3, []string{match("b.example.", "NS DS"), cover("a.b.example."), cover("*.b.example.")}, Bogus},
		{"encloser leads elsewhere", "a.b.example.", dns.TypeA, 3, []string{match("b.example.", "DNAME RRSIG"), cover("a.b.example."), cover("*.b.example.")}, Bogus},
		{"ANY where there is data", "a.example.", dns.TypeANY, 0, []string{match("a.example.", "A RRSIG")}, Bogus},
		{"ANY of an empty non-terminal", "a.example.", dns.TypeANY, 0, []string{match("a.example.", "")}, Secure},
		{"wildcard nodata", "a.example.", dns.TypeMX, 0, []string{apex, cover("a.example."), match("*.example.", "A RRSIG")}, Secure},
		{"wildcard has it", "a.example.", dns.TypeA, 0, []string{apex, cover("a.example."), match("*.example.", "A RRSIG")}, Bogus},
		{"DS under opt-out", "a.example.", dns.TypeDS, 0, []string{apex, out("a.example.")}, Insecure},
		{"DS without opt-out", "a.example.", dns.TypeDS, 0, []string{apex, cover("a.example.")}, Bogus},
	} {
		ns := z.signed(t, "", soa)
		for _, x := range c.nsec3 {
			ns = append(ns, z.signed(t, "", x)...)
		}
		v := w.judge(c.name, c.typ, message(t, c.name, c.typ, c.rcode, nil, ns))
		if v.Status != c.status {
			t.Errorf("%s: %v %q, want %v", c.what, v.Status, v.Text, c.status)
		}
	}
}

func TestIterations(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	for _, c := range []struct {
		n      int
		status Status
		code   uint16
	}{{0, Secure, 0}, {50, Secure, 0}, {51, Insecure, codeIterations}, {501, Bogus, codeIterations}} {
		ns := join(z.signed(t, "", soa), z.signed(t, "", near("a.example.", c.n, 0, false, "A RRSIG")))
		w.want(fmt.Sprint(c.n), w.judge("a.example.", dns.TypeMX, message(t, "a.example.", dns.TypeMX, 0, nil, ns)), c.status, c.code)
	}
}

// With as many iterations as are served, three names can be hashed. That is enough for names far below the apex, and for
// those a few labels below another encloser.
func TestFewHashes(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	match := func(name, types string) string { return near(name, 50, 0, false, types) }
	cover := func(name string) string { return near(name, 50, 0, true, "A RRSIG") }
	apex := match("example.", "NS SOA RRSIG DNSKEY NSEC3PARAM")
	for name, nsec3 := range map[string][]string{
		"b.example.":         {apex, cover("b.example."), cover("*.example.")},
		"a.b.example.":       {apex, cover("b.example."), cover("*.example.")},
		"a.b.c.d.b.example.": {apex, cover("b.example."), cover("*.example.")},
		"a.c.example.":       {match("c.example.", "A RRSIG"), cover("a.c.example."), cover("*.c.example.")},
		"a.b.c.example.":     {match("c.example.", "A RRSIG"), cover("b.c.example."), cover("*.c.example.")},
	} {
		ns := z.signed(t, "", soa)
		for _, x := range nsec3 {
			ns = append(ns, z.signed(t, "", x)...)
		}
		w.want(name, w.judge(name, dns.TypeA, message(t, name, dns.TypeA, 3, nil, ns)), Secure, 0)
	}
}

func TestUnsignedDelegationByNSEC3(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	a, _ := dns.NewRR("www.un.example. 300 IN A 192.0.2.1")
	m := message(t, "www.un.example.", dns.TypeA, 0, []dns.RR{a}, nil)
	apex := near("example.", 1, 0, false, "NS SOA RRSIG DNSKEY NSEC3PARAM")
	for _, c := range []struct {
		what   string
		nsec3  []string
		status Status
	}{
		{"match", []string{near("un.example.", 1, 0, false, "NS")}, Insecure},
		{"match with DS", []string{near("un.example.", 1, 0, false, "NS DS RRSIG")}, Bogus},
		{"match of the child", []string{near("un.example.", 1, 0, false, "NS SOA RRSIG")}, Bogus},
		{"opt-out", []string{apex, near("un.example.", 1, 1, true, "A RRSIG")}, Insecure},
		{"no opt-out", []string{apex, near("un.example.", 1, 0, true, "A RRSIG")}, Bogus},
		{"opt-out without encloser", []string{near("un.example.", 1, 1, true, "A RRSIG")}, Bogus},
	} {
		w.noDS(z, "un.example.", append(c.nsec3, soa)...)
		if v := w.judge("www.un.example.", dns.TypeA, m); v.Status != c.status {
			t.Errorf("%s: %v %q, want %v", c.what, v.Status, v.Text, c.status)
		}
	}
}

// A zone may have many keys of one tag, and many signatures: each of both
// would be tried with each.
func TestBudgets(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	good := z.signed(t, "", "www.example. 300 IN A 192.0.2.1")
	m := message(t, "www.example.", dns.TypeA, 0, good, nil)
	w.conf.Budget.Checks = 3
	w.want("checks", w.judge("www.example.", dns.TypeA, m), Bogus, dns.ExtendedErrorCodeDNSSECIndeterminate)
	w.conf.Budget = DefaultBudget()
	w.conf.Budget.Fetches = 2
	w.want("fetches", w.judge("www.example.", dns.TypeA, m), Bogus, dns.ExtendedErrorCodeDNSSECIndeterminate)
	w.conf.Budget = DefaultBudget()

	var many []dns.RR
	for i := range 300 { // of one RRset: more than are kept
		bad := dns.Copy(good[1]).(*dns.RRSIG)
		bad.Expiration -= uint32(i)
		many = append(many, bad)
	}
	v := w.judge("www.example.", dns.TypeA, message(t, "www.example.", dns.TypeA, 0, append(good[:1:1], many[1:]...), nil))
	if v.Status != Bogus || v.Checks > 3+w.conf.Budget.Sigs {
		t.Errorf("many signatures: %v, %d computed", v.Status, v.Checks)
	}

	keys := []dns.RR{z.key}
	for range 20 { // the tag of all of them is that of the first: halves of the sum change places
		k := dns.Copy(keys[len(keys)-1]).(*dns.DNSKEY)
		k.PublicKey = rotated(t, k.PublicKey)
		keys = append(keys, k)
	}
	w.put("example.", dns.TypeDNSKEY, 0, z.sign(t, "", keys...), nil)
	before := v.Checks
	v = w.judge("www.example.", dns.TypeA, message(t, "www.example.", dns.TypeA, 0, append(good[:1:1], many[1:]...), nil))
	if v.Status != Bogus || v.Code != dns.ExtendedErrorCodeDNSSECIndeterminate || v.Checks > before+w.conf.Budget.Tagged {
		t.Errorf("many keys of one tag: %v, %d computed", v.Status, v.Checks)
	}
}

// rotated is a key whose octets have moved by two: its tag is the same, if it
// is a key at all.
func rotated(t *testing.T, public string) string {
	t.Helper()
	k := &dns.DNSKEY{Hdr: header("example.", dns.TypeDNSKEY), PublicKey: public}
	r := rdataOf(t, k)[4:]
	x, _ := dns.NewRR(fmt.Sprintf("example. IN TYPE48 \\# %d 0101030f%x", 4+len(r), r[2:]+r[:2]))
	b := rdataOf(t, x)
	back, _, err := dns.UnpackRR([]byte("\x00\x00\x30\x00\x01\x00\x00\x00\x00"+string([]byte{0, byte(len(b))})+b), 0)
	if err != nil {
		t.Fatal(err)
	}
	return back.(*dns.DNSKEY).PublicKey
}

func FuzzTask(f *testing.F) {
	w, _, z := lab(f, dns.ED25519)
	add := func(name string, typ uint16, rcode int, answer, ns []dns.RR) {
		m := new(dns.Msg)
		m.SetQuestion(name, typ)
		m.Response, m.Rcode, m.Answer, m.Ns = true, rcode, answer, ns
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	good := z.signed(f, "", "www.example. 300 IN A 192.0.2.1")
	add("www.example.", dns.TypeA, 0, good, nil)
	add("b.example.", dns.TypeA, 3, nil, join(z.signed(f, "", soa), z.signed(f, "", "a.example. 300 IN NSEC c.example. A RRSIG NSEC")))
	add("b.example.", dns.TypeA, 3, nil, z.signed(f, "", near("a.example.", 1, 0, false, "A RRSIG")))
	add("x.d.example.", dns.TypeA, 0, z.signed(f, "", "d.example. 300 IN DNAME e.example."), nil)
	true4 := rrset.New("", 0, 0, "\xc0\x00\x02\x01").First()
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := rrset.Parse(b)
		if err != nil {
			return
		}
		task := New(&w.conf, Question{m.Name, m.Type}, m, testNow)
		for range 100 {
			missing := task.Step()
			for _, q := range missing {
				reply := w.replies[q]
				if reply == nil && len(b)%2 == 0 { // what came says something of the chain, too
					reply = m
				}
				task.Give(q, reply)
			}
			if len(missing) == 0 {
				break
			}
		}
		v := task.Verdict()
		if v == nil {
			t.Fatal("it has no end")
		}
		if v.Status != Secure || m.Type != dns.TypeA {
			return
		}
		for _, s := range m.Section[rrset.Answer] { // nothing that the zone did not sign is secure
			if s.Type == dns.TypeA && !s.Has(true4) {
				t.Errorf("%s %x is secure", rrset.Text(s.Name), s.First())
			}
		}
	})
}
