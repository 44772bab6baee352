package wire

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func query(t testing.TB, name string, qtype uint16, size int) *Query {
	m := question(name, qtype)
	if size > 0 {
		m.SetEdns0(uint16(size), false)
	}
	q := new(Query)
	if !q.Parse(packed(t, m)) {
		t.Fatal("not eligible")
	}
	return q
}

func unpack(t testing.TB, b []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return m
}

func lines(rrs []dns.RR) string {
	var b strings.Builder
	for _, rr := range rrs {
		b.WriteString(strings.ReplaceAll(rr.String(), "\t", " ") + "\n")
	}
	return b.String()
}

func TestBuild(t *testing.T) {
	q := query(t, "WWW.example.org.", TypeA, 1232)
	var w Reply
	w.Reset(make([]byte, 0, 512))
	w.Begin(q)
	w.SetFlag(FlagAA, true)
	zone := MustName("example.org")
	ns := MustName("ns1.example.org")
	w.Target(Answer, q.Name(), TypeCNAME, 300, MustName("web.example.org"))
	w.Addr(Answer, MustName("web.example.org"), 300, netip.MustParseAddr("192.0.2.1"))
	w.Addr(Answer, MustName("web.example.org"), 300, netip.MustParseAddr("2001:db8::1"))
	w.SOA(Authority, zone, 60, &SOA{MName: ns, RName: MustName("hostmaster.example.org"), Serial: 1, Refresh: 2, Retry: 3, Expire: 4, Minimum: 5})
	w.Record(Authority, zone, TypeMX, ClassIN, 20, append([]byte{0, 10}, MustName("mail.example.org")...))
	w.SRV(Additional, MustName("_dns._udp.example.org"), 30, 1, 2, 53, ns)
	w.TXT(Additional, zone, ClassIN, 7, strings.Repeat("x", 300))
	m := unpack(t, w.Finish(q, 1232))
	want := "WWW.example.org. 300 IN CNAME web.example.org.\n" +
		"web.example.org. 300 IN A 192.0.2.1\n" +
		"web.example.org. 300 IN AAAA 2001:db8::1\n"
	if got := lines(m.Answer); got != want {
		t.Errorf("answer:\n%s", got)
	}
	want = "example.org. 60 IN SOA ns1.example.org. hostmaster.example.org. 1 2 3 4 5\nexample.org. 20 IN MX 10 mail.example.org.\n"
	if got := lines(m.Ns); got != want {
		t.Errorf("authority:\n%s", got)
	}
	opt := m.IsEdns0()
	if opt == nil || opt.UDPSize() != 1232 || opt.Do() || len(m.Extra) != 3 {
		t.Fatalf("additional: %v", m.Extra)
	}
	if txt := m.Extra[1].(*dns.TXT).Txt; len(txt) != 2 || len(txt[0]) != 255 || len(txt[1]) != 45 {
		t.Errorf("TXT: %v", txt)
	}
	if !m.Response || !m.Authoritative || !m.RecursionDesired || m.Truncated || m.Rcode != 0 {
		t.Errorf("flags: %v", m.MsgHdr)
	}
	// The plain length is what miekg/dns counts without compression and OPT.
	m.Extra = m.Extra[:2]
	if m.Compress = false; w.PlainLen() != m.Len() {
		t.Errorf("plain length %d, want %d", w.PlainLen(), m.Len())
	}
}

// No pointer may lead into a record that can change its place.
func TestMovableRecordsAreNoTargets(t *testing.T) {
	q := query(t, "a.example.org.", TypeA, 4096)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	for i := range 4 {
		w.Addr(Answer, MustName("other.example.net"), 300, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	for i := range 3 {
		w.Record(Authority, MustName("example.com"), TypeMX, ClassIN, 20, append([]byte{0, byte(i)}, MustName("mail.example.com")...))
	}
	size := w.Recs()[1].Off - w.Recs()[0].Off
	for i, r := range w.Recs()[:4] {
		if w.end(i)-int(r.Off) != int(size) {
			t.Errorf("address record %d has %d octets, the first %d", i, w.end(i)-int(r.Off), size)
		}
	}
	for i := range w.Recs()[4:] {
		if s := string(w.RData(4 + i)[2:]); s != string(MustName("mail.example.com")) {
			t.Errorf("exchange %d: %q", i, s)
		}
	}
}

func TestCompressionKeepsCase(t *testing.T) {
	q := query(t, "WwW.eXample.Org.", TypeA, 4096)
	var w Reply
	w.Reset(nil)
	w.FoldOwners()
	w.Begin(q)
	w.Addr(Answer, q.Lower(), 300, netip.MustParseAddr("192.0.2.1"))
	w.Target(Authority, MustName("example.org"), TypeNS, 300, MustName("ns.example.org"))
	w.Target(Authority, MustName("example.org"), TypeNS, 300, MustName("www.example.org"))
	m := unpack(t, w.Finish(q, 1232))
	if got := lines(m.Answer) + lines(m.Ns); got != "WwW.eXample.Org. 300 IN A 192.0.2.1\nexample.org. 300 IN NS ns.example.org.\nexample.org. 300 IN NS www.example.org.\n" {
		t.Error(got)
	}
}

// The last name of the message, too, can be pointed to: mostly that is the target of an alias, whose records follow.
func TestCompressionFindsTheLastName(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 4096)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	target := MustName("a.host.example.net")
	w.Target(Answer, q.Name(), TypeCNAME, 300, target)
	before := len(w.Bytes())
	w.Addr(Answer, target, 300, netip.MustParseAddr("192.0.2.1"))
	if n := len(w.Bytes()) - before; n != 2+10+4 {
		t.Errorf("the address takes %d octets", n)
	}
	unpack(t, w.Finish(q, 1232))
}

func TestOwnersAreWrittenAsTheyCome(t *testing.T) {
	q := query(t, "WwW.eXample.Org.", TypeA, 4096)
	for _, tc := range []struct {
		owner string
		fold  bool
		want  string
	}{
		{"www.example.org", false, "www.example.org."},
		{"www.example.org", true, "WwW.eXample.Org."},
		{"WwW.eXample.Org", false, "WwW.eXample.Org."},
		{"x.www.example.org", true, "x.www.example.org."},
	} {
		var w Reply
		w.Reset(nil)
		if tc.fold {
			w.FoldOwners()
		}
		w.Begin(q)
		w.Addr(Answer, MustName(tc.owner), 300, netip.MustParseAddr("192.0.2.1"))
		if got := unpack(t, w.Finish(q, 1232)).Answer[0].Header().Name; got != tc.want {
			t.Errorf("%s, fold %v: got %s", tc.owner, tc.fold, got)
		}
	}
}

func TestFit(t *testing.T) {
	host := func(i int) []byte { return MustName(fmt.Sprintf("ns%d.sub.example.org", i)) }
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	for _, tc := range []struct {
		what    string
		edns    int
		build   func(w *Reply)
		tc      bool
		answers int // -1: any number below what was put in
	}{
		{"answers are cut", 0, func(w *Reply) {
			for i := range 60 {
				w.Addr(Answer, w.qname(), 1, addr(i))
			}
		}, true, 29},
		{"room for them", 1232, func(w *Reply) {
			for i := range 60 {
				w.Addr(Answer, w.qname(), 1, addr(i))
			}
		}, false, 60},
		{"additional records go silently", 512, func(w *Reply) {
			w.SetFlag(FlagAA, true)
			w.Target(Answer, w.qname(), TypeNS, 1, host(1))
			for i := range 60 {
				w.Addr(Additional, host(i), 1, addr(i))
			}
		}, false, 1},
		{"a referral's glue does not", 512, func(w *Reply) {
			w.Target(Authority, MustName("sub.example.org"), TypeNS, 1, host(1))
			for i := range 60 {
				w.Addr(Additional, host(i), 1, addr(i))
			}
		}, true, 0},
		{"one big record", 0, func(w *Reply) {
			w.TXT(Answer, w.qname(), ClassIN, 1, strings.Repeat("x", 600))
		}, true, 0},
	} {
		q := query(t, "www.sub.example.org.", TypeA, tc.edns)
		var w Reply
		w.Reset(nil)
		w.Begin(q)
		tc.build(&w)
		b := w.Finish(q, 1232)
		m := unpack(t, b)
		if len(b) > q.Limit() || m.Truncated != tc.tc || len(m.Answer) != tc.answers {
			t.Errorf("%s: %d octets, TC %v, %d answers", tc.what, len(b), m.Truncated, len(m.Answer))
		}
		if (m.IsEdns0() != nil) != (tc.edns > 0) {
			t.Errorf("%s: OPT %v", tc.what, m.IsEdns0())
		}
	}
}

func TestFitKeepsRRsetsWholeInAdditional(t *testing.T) {
	q := query(t, "example.org.", TypeNS, 512)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	w.SetFlag(FlagAA, true)
	ns := MustName("ns.example.org")
	w.Target(Answer, q.Lower(), TypeNS, 1, ns)
	w.Addr(Additional, ns, 1, netip.MustParseAddr("2001:db8::1"))
	for i := range 60 {
		w.Addr(Additional, ns, 1, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	m := unpack(t, w.Finish(q, 1232))
	if m.Truncated || len(m.Extra) != 2 {
		t.Errorf("TC %v, additional %v", m.Truncated, m.Extra)
	}
}

func TestPacked(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 4096)
	var w Reply
	w.Reset(nil)
	m := new(dns.Msg)
	m.SetQuestion("www.example.org.", TypeA)
	m.Authoritative, m.RecursionAvailable = true, true
	for _, s := range []string{"www.example.org. 300 IN CNAME web.example.net.", "web.example.net. 20 IN A 192.0.2.1", "web.example.net. 20 IN RRSIG A 13 3 20 20300101000000 20200101000000 1 example.net. AAAA"} {
		rr, err := dns.NewRR(s)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	m.SetEdns0(4096, false)
	if err := w.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	p := w.Pack()
	other := query(t, "WWW.example.ORG.", TypeA, 0)
	w.Reset(nil)
	w.Load(&p, other)
	w.SetTTLs(17)
	got := unpack(t, w.Finish(other, 1232))
	want := "WWW.example.ORG. 17 IN CNAME web.example.net.\nweb.example.net. 17 IN A 192.0.2.1\n"
	if s := lines(got.Answer); !strings.HasPrefix(s, want) || len(got.Answer) != 3 || !got.RecursionAvailable {
		t.Errorf("got %s", s)
	}
	// What was put away is as it was.
	w.Reset(nil)
	w.Load(&p, q)
	if w.TTL(0) != 300 || w.TTL(1) != 20 {
		t.Errorf("TTLs %d %d", w.TTL(0), w.TTL(1))
	}
	m.Extra = nil
	if w.PlainLen() != m.Len() {
		t.Errorf("plain length %d, want %d", w.PlainLen(), m.Len())
	}
}

// A packed reply follows the client's case where the question's name is an owner, and nowhere else.
func TestPackedKeepsCase(t *testing.T) {
	for _, tc := range []struct {
		records []string // the first ones are answers, those of SOA and NS the authority
		made    string
		leans   bool
	}{
		{[]string{"mx.Example.org. 60 IN A 192.0.2.1"}, "mx.Example.org.", false},
		{[]string{"mx.Example.org. 60 IN MX 10 www.Example.org.", "Example.org. 60 IN NS ns.Example.org."}, "mx.Example.org.", true},
		{[]string{"mx.Example.org. 60 IN MX 10 mx.Example.org."}, "mx.Example.org.", true},
		{[]string{"Example.org. 60 IN SOA ns.Example.org. host.Example.org. 1 2 3 4 5"}, "no.mx.Example.org.", true},
		{[]string{"mx.Example.org. 60 IN MX 10 www.example.ORG."}, "mx.Example.org.", false},
		{[]string{"mx.Example.org. 60 IN CNAME www.example.net.", "www.example.net. 60 IN A 192.0.2.1"}, "mx.Example.org.", false},
	} {
		var w Reply
		w.Reset(nil)
		m := new(dns.Msg)
		m.SetQuestion(tc.made, TypeA)
		for _, s := range tc.records {
			rr, err := dns.NewRR(s)
			if err != nil {
				t.Fatal(err)
			}
			if k := rr.Header().Rrtype; k == dns.TypeSOA || k == dns.TypeNS {
				m.Ns = append(m.Ns, rr)
			} else {
				m.Answer = append(m.Answer, rr)
			}
		}
		if err := w.SetMsg(m); err != nil {
			t.Fatal(err)
		}
		plain := w.PlainLen()
		p := w.Pack()
		if p.names&leaning != 0 != tc.leans {
			t.Errorf("%q: leans %v", tc.records, p.names&leaning != 0)
		}
		for _, asked := range []string{tc.made, strings.ToUpper(tc.made), strings.ToLower(tc.made)} {
			q := query(t, asked, TypeA, 0)
			w.Reset(nil)
			w.Load(&p, q)
			if w.PlainLen() != plain {
				t.Errorf("%s: length %d, want %d", asked, w.PlainLen(), plain)
			}
			got := unpack(t, w.Finish(q, 1232))
			want := ""
			for _, rr := range append(m.Copy().Answer, m.Copy().Ns...) {
				if rr.Header().Name == tc.made {
					rr.Header().Name = asked
				}
				want += strings.ReplaceAll(rr.String(), "\t", " ") + "\n"
			}
			if s := lines(append(got.Answer, got.Ns...)); s != want {
				t.Errorf("asked %s:\n%swant\n%s", asked, s, want)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 4096)
	var w Reply
	w.Reset(nil)
	w.AddOption(OptionNSID, []byte("server"))
	w.Begin(q)
	m := unpack(t, w.Finish(q, 1400))
	if o := m.IsEdns0().Option; len(o) != 1 || o[0].Option() != dns.EDNS0NSID {
		t.Errorf("options %v", o)
	}
	// No OPT for those who sent none.
	q = query(t, "www.example.org.", TypeA, 0)
	w.Begin(q)
	if m := unpack(t, w.Finish(q, 1400)); m.IsEdns0() != nil {
		t.Errorf("OPT without being asked: %v", m)
	}
}

// FuzzSetMsg takes any message of miekg/dns through a Reply and compares the records.
func FuzzSetMsg(f *testing.F) {
	m := question("www.example.org.", TypeA)
	m.Response = true
	for _, s := range []string{"www.example.org. 300 IN CNAME a.b.", "a.b. 1 IN MX 10 www.example.org.", "b. 1 IN SOA a.b. x.example.org. 1 2 3 4 5", "_x._y.b. 5 IN SRV 1 2 3 a.b.", "b. 5 IN DNAME example.org."} {
		rr, _ := dns.NewRR(s)
		m.Answer = append(m.Answer, rr)
		m.Ns = append(m.Ns, rr)
	}
	m.Compress = true
	f.Add(packed(f, m))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(dns.Msg)
		if m.Unpack(b) != nil || len(m.Question) != 1 {
			return
		}
		var w Reply
		w.Reset(nil)
		if w.SetMsg(m) != nil || !m.Truncated && w.Flag(FlagTC) { // or it does not fit
			return
		}
		var buf [300]byte
		n, err := dns.PackDomainName(m.Question[0].Name, buf[:], 0, nil, false)
		if err != nil {
			t.Fatalf("%v", err)
		}
		q := &Query{}
		q.Peer.Limit = MaxMessage
		q.reset()
		q.first.set(buf[:n])
		got, err := w.Msg(m)
		if err != nil {
			if again, packErr := m.Pack(); packErr != nil || new(dns.Msg).Unpack(again) != nil {
				return // miekg/dns cannot read it back either
			}
			t.Fatalf("%v: %v", m, err)
		}
		for i, s := range [...][2][]dns.RR{{m.Answer, got.Answer}, {m.Ns, got.Ns}, {m.Extra, got.Extra}} {
			s[0] = slices.DeleteFunc(s[0], func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeOPT })
			if !strings.EqualFold(lines(s[0]), lines(s[1])) && lines(repack(s[0])) == lines(s[0]) {
				t.Fatalf("section %d:\n%s, was\n%s", i, lines(s[1]), lines(s[0]))
			}
		}
	})
}

// repack takes records through miekg/dns' own packer once.
func repack(rrs []dns.RR) (out []dns.RR) {
	for _, rr := range rrs {
		buf := make([]byte, 70000)
		n, err := dns.PackRR(rr, buf, 0, nil, false)
		if err != nil {
			return nil
		}
		rr, _, err := dns.UnpackRR(buf[:n], 0)
		if err != nil {
			return nil
		}
		out = append(out, rr)
	}
	return out
}

func TestLaneDoesNotAllocate(t *testing.T) {
	m := question("www.example.org.", dns.TypeA)
	m.SetEdns0(1232, true)
	p := packed(t, m)
	var q Query
	var w Reply
	buf := make([]byte, 4096)
	soa := &SOA{MName: MustName("ns.example.org"), RName: MustName("h.example.org")}
	zone := MustName("example.org")
	if n := testing.AllocsPerRun(100, func() {
		if !q.Parse(p) {
			t.Fatal("not eligible")
		}
		w.Reset(buf)
		w.Begin(&q)
		w.Addr(Answer, q.Lower(), 30, netip.AddrFrom4([4]byte{192, 0, 2, 1}))
		w.SOA(Authority, zone, 30, soa)
		if w.Finish(&q, 1232) == nil {
			t.Fatal("no reply")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBuild(b *testing.B) {
	q := query(b, "www.example.org.", TypeA, 1232)
	var w Reply
	buf := make([]byte, 4096)
	soa := &SOA{MName: MustName("ns.example.org"), RName: MustName("h.example.org")}
	zone := MustName("example.org")
	for _, bc := range []struct {
		name  string
		build func()
	}{
		{"A", func() { w.Addr(Answer, q.Lower(), 30, netip.AddrFrom4([4]byte{192, 0, 2, 1})) }},
		{"SOA", func() { w.SOA(Authority, zone, 30, soa) }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(buf)
				w.Begin(q)
				bc.build()
				w.Finish(q, 1232)
			}
		})
	}
	w.Reset(buf)
	w.Begin(q)
	w.Addr(Answer, q.Lower(), 30, netip.AddrFrom4([4]byte{192, 0, 2, 1}))
	p := w.Pack()
	b.Run("Load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Reset(buf)
			w.Load(&p, q)
			w.SetTTLs(7)
			w.Finish(q, 1232)
		}
	})
}

// However an owner is written, if it is the question's name it follows its case where that is wanted.
func TestLoadFoldsOwners(t *testing.T) {
	for _, owner := range []string{"\xC0\x0C", "\x03www\xC0\x10", "\x03www\x07example\x03org\x00", "\x03www\x07example\xC0\x18"} {
		for _, fold := range []bool{true, false} {
			q := query(t, "WWW.Example.org.", TypeA, 0)
			r := new(dns.Msg).SetQuestion("WWW.Example.org.", TypeA)
			r.Response = true
			msg, err := r.Pack()
			if err != nil {
				t.Fatal(err)
			}
			msg[7] = 1 // an answer
			msg = append(append(msg, owner...), "\x00\x01\x00\x01\x00\x00\x00\x3C\x00\x04\xC0\x00\x02\x01"...)
			var w Reply
			w.Reset(nil)
			if fold {
				w.FoldOwners()
			}
			if !w.LoadMessage(q, msg) {
				t.Fatalf("%q is not taken over", owner)
			}
			var as dns.Msg
			if err := as.Unpack(msg); err != nil {
				t.Fatal(err)
			}
			want := as.Answer[0].Header().Name
			if fold {
				want = "WWW.Example.org."
			}
			if got := unpack(t, w.Finish(q, 1232)); got.Answer[0].Header().Name != want {
				t.Errorf("%q, fold %v: owner %s", owner, fold, got.Answer[0].Header().Name)
			}
		}
	}
}
