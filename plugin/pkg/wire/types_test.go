package wire_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// allTypes is a record of each type that github.com/miekg/dns can read as text, in RDATA as master files have it. Names
// in it share suffixes with owners and among themselves, so there is something to compress.
var allTypes = []string{
	"A 192.0.2.1", "AAAA 2001:db8::1", "NS ns1.example.org.", "MD md.example.org.", "MF mf.example.org.", "CNAME web.example.org.",
	"SOA ns1.example.org. hostmaster.example.org. 7 7200 3600 1209600 60", "MB mb.example.org.", "MG mg.example.org.", "MR mr.example.org.",
	"PTR ptr.example.org.", `HINFO "cpu" "os"`, "MINFO r.example.org. e.example.org.", "MX 10 mail.example.org.", `TXT "one" "two" ""`,
	"RP mbox.example.org. txt.example.org.", "AFSDB 1 afs.example.org.", "X25 311061700956", "ISDN 150862028003217 004", "RT 2 rt.example.org.",
	"NSAP-PTR nsap.example.org.", "SIG A 13 3 300 20450101000000 20200101000000 1 example.org. c2ln", "KEY 256 3 13 a2V5",
	"PX 10 map822.example.org. mapx400.example.org.", "GPOS -32.6882 116.8652 10.0", "LOC 51 30 12.748 N 0 7 39.611 W 0.00m 0.00m 0.00m 0.00m",
	"EID e32c6f78163a9348", "NIMLOC 32251a030067", "SRV 1 2 443 srv.example.org.", `NAPTR 100 50 "s" "http" "" _http._tcp.example.org.`,
	"KX 10 kx.example.org.", "CERT 1 2 3 Y2VydA==", "DNAME new.example.org.", "APL 1:192.0.2.0/24 !2:2001:db8::/32",
	"DS 1 13 2 " + digest32, "SSHFP 1 2 " + digest32, "IPSECKEY 10 3 2 gw.example.org. a2V5", "IPSECKEY 10 1 2 192.0.2.7 a2V5",
	"RRSIG A 13 3 300 20450101000000 20200101000000 1 example.org. c2ln", "NSEC next.example.org. A RRSIG NSEC TYPE1234", "DNSKEY 257 3 13 a2V5",
	"DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=", "NSEC3 1 0 1 aabb 2t7b4g4vsa5smi47k61mv5bv1a22bojr A", "NSEC3PARAM 1 0 1 aabb",
	"TLSA 3 1 1 " + digest32, "SMIMEA 3 1 1 " + digest32, "HIP 2 200100107B1A74DF365639CC39F1D578 a2V5 rvs.example.org.", `NINFO "x"`,
	"RKEY 0 3 13 a2V5", "TALINK a.example.org. b.example.org.", "CDS 1 13 2 " + digest32, "CDNSKEY 257 3 13 a2V5", "OPENPGPKEY a2V5",
	"CSYNC 66 3 A NS AAAA", "ZONEMD 7 1 1 " + strings.Repeat("ab", 48), `SVCB 1 svc.example.org. alpn="h2,h3" port="8443"`,
	`HTTPS 1 . alpn="h2" ipv4hint="192.0.2.1"`, `SPF "v=spf1 -all"`, `UINFO "x"`, "UID 7", "GID 7", `UNSPEC "x"`, "NID 10 0014:4fff:ff20:ee64",
	"L32 10 10.1.2.0", "L64 10 2001:0DB8:1140:1000", "LP 10 l64.example.org.", "EUI48 00-00-5e-00-53-2a", "EUI64 00-00-5e-ef-10-00-00-2a",
	`URI 10 1 "https://example.org/"`, `CAA 0 issue "ca.example.net"`, `AVC "x"`, "AMTRELAY 10 0 3 relay.example.org.", "TYPE65280 \\# 3 010203",
	"NXNAME", "NXT next.example.org. A",
}

const digest32 = "0000000000000000000000000000000000000000000000000000000000000000"

// everyType is allTypes as records of one owner, but those that the library in use cannot read.
func everyType(t testing.TB, owner string) (all []dns.RR) {
	t.Helper()
	seen := map[uint16]bool{}
	for _, text := range allTypes {
		rr, err := dns.NewRR(owner + " 300 IN " + text)
		if err != nil || rr == nil {
			continue
		}
		buf := make([]byte, 2048)
		n, err := dns.PackRR(rr, buf, 0, nil, false)
		if err != nil {
			continue
		}
		if rr, _, err = dns.UnpackRR(buf[:n], 0); err != nil { // as texts are written that were octets
			continue
		}
		seen[rr.Header().Rrtype] = true
		all = append(all, rr)
	}
	if len(seen) < 60 { // else the table says nothing
		t.Fatalf("%d types only can be read: %v", len(seen), slices.Sorted(maps.Keys(seen)))
	}
	return all
}

// reply is a message of some answers to a question for the first one's owner.
func replyOf(rrs ...dns.RR) *dns.Msg {
	m := new(dns.Msg).SetQuestion(rrs[0].Header().Name, dns.TypeA)
	m.Response, m.Answer = true, rrs
	return m
}

// limitless is a query for www.example.org. of a client that takes any length.
func limitless(t testing.TB, name string) *wire.Query {
	t.Helper()
	q := parsed(t, name, dns.TypeA)
	q.Peer.Limit = wire.MaxMessage
	return q
}

func finished(t testing.TB, w *wire.Reply, q *wire.Query) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if b := w.Finish(q, 1232); m.Unpack(b) != nil {
		t.Fatalf("cannot be unpacked: %x", b)
	}
	return m
}

// A record of any type that is added to a reply is read back as it was, and counts with its length in full (RFC 1035
// §3.2.1, RFC 3597 §4).
func TestEveryTypeIsAdded(t *testing.T) {
	q := limitless(t, "www.example.org.")
	for _, rr := range everyType(t, "x.www.example.org.") {
		var w wire.Reply
		w.Reset(nil)
		w.Begin(q)
		for range 2 { // the second may point into the first
			if err := w.RR(wire.Answer, rr); err != nil {
				t.Fatal(rr, err)
			}
		}
		m := replyOf(rr, rr)
		m.SetQuestion("www.example.org.", dns.TypeA)
		m.Compress = false
		plain, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if w.PlainLen() != len(plain) {
			t.Errorf("%s: length %d, want %d", rr, w.PlainLen(), len(plain))
		}
		got := finished(t, &w, q)
		if len(got.Answer) != 2 || got.Answer[0].String() != rr.String() || got.Answer[1].String() != rr.String() {
			t.Errorf("got\n%v\nwant twice\n%v", got.Answer, rr)
		}
	}
}

// Names in RDATA are compressed for the types of RFC 1035 and for no other (RFC 3597 §4): who does not know a type
// cannot follow its pointers.
func TestOnlyOldTypesAreCompressed(t *testing.T) {
	old := []uint16{dns.TypeNS, dns.TypeMD, dns.TypeMF, dns.TypeCNAME, dns.TypeSOA, dns.TypeMB, dns.TypeMG, dns.TypeMR, dns.TypePTR, dns.TypeMINFO, dns.TypeMX}
	q := limitless(t, "www.example.org.")
	for _, rr := range everyType(t, "www.example.org.") {
		var w wire.Reply
		w.Reset(nil)
		w.Begin(q)
		if err := w.RR(wire.Answer, rr); err != nil {
			t.Fatal(rr, err)
		}
		buf := make([]byte, 2048)
		n, _ := dns.PackRR(rr, buf, 0, nil, false)
		full := n - len("\x03www\x07example\x03org\x00") - 10
		shorter := len(w.RData(0)) < full
		if want := slices.Contains(old, rr.Header().Rrtype); shorter != want {
			t.Errorf("%s: %d of %d octets, want compressed: %v", rr, len(w.RData(0)), full, want)
		}
	}
}

// A reply from elsewhere with a record of any type is taken over as it is, compressed or not, or refused whole; it can
// be put away and given to a client with another case.
func TestEveryTypeIsLoaded(t *testing.T) {
	refused := map[string]bool{}
	for _, rr := range everyType(t, "www.example.org.") {
		for _, compress := range []bool{false, true} {
			m := replyOf(rr)
			m.Compress = compress
			b, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			q := limitless(t, "www.example.org.")
			var w wire.Reply
			w.Reset(nil)
			w.FoldOwners()
			if !w.LoadMessage(q, b) {
				refused[dns.Type(rr.Header().Rrtype).String()] = true
				continue
			}
			p := w.Pack()
			if got := finished(t, &w, q); len(got.Answer) != 1 || got.Answer[0].String() != rr.String() {
				t.Errorf("got\n%v\nwant\n%v", got.Answer, rr)
			}
			loud := limitless(t, "WWW.EXAMPLE.ORG.")
			w.Reset(nil)
			w.Load(&p, loud)
			got := finished(t, &w, loud)
			want := dns.Copy(rr)
			want.Header().Name = "WWW.EXAMPLE.ORG."
			if got.Answer[0].String() != want.String() {
				t.Errorf("put away: got\n%v\nwant\n%v", got.Answer[0], want)
			}
		}
	}
	// Those that are asked for every day must not take the slow way.
	for _, often := range []string{"A", "AAAA", "NS", "CNAME", "SOA", "PTR", "MX", "TXT", "SRV", "DS", "DNSKEY", "RRSIG", "NSEC", "NSEC3", "TLSA", "CAA", "HTTPS", "SVCB", "DNAME"} {
		if refused[often] {
			t.Errorf("%s is refused", often)
		}
	}
}

// Records of all types keep what they are when their order changes, whatever points into them.
func TestEveryTypeIsReordered(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	all := everyType(t, "x.www.example.org.")
	q := limitless(t, "www.example.org.")
	for range 50 {
		var w wire.Reply
		w.Reset(nil)
		w.Begin(q)
		for _, rr := range all {
			if err := w.RR(wire.Answer, rr); err != nil {
				t.Fatal(err)
			}
		}
		plain := w.PlainLen()
		order := make([]uint16, len(all))
		for i, p := range r.Perm(len(all)) {
			order[i] = uint16(p)
		}
		w.Reorder(order)
		if w.PlainLen() != plain {
			t.Fatalf("length %d, was %d", w.PlainLen(), plain)
		}
		for i, rr := range finished(t, &w, q).Answer {
			if want := all[order[i]]; rr.String() != want.String() {
				t.Fatalf("record %d:\n%v\nwant\n%v", i, rr, want)
			}
		}
	}
}

// What is too long for its client is compressed as far as it can be: never longer than what github.com/miekg/dns makes
// of it, which compresses the same names (RFC 1035 §4.1.4).
func TestTightIsAsShortAsTheLibrarys(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	all := everyType(t, "a.b.example.org.")
	for _, rr := range slices.Clone(all) {
		other := dns.Copy(rr)
		other.Header().Name = "c.b.example.org."
		all = append(all, other)
	}
	for range 100 {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		m.Response, m.Compress, m.Answer = true, true, all[:5+r.IntN(20)]
		theirs, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		q := limitless(t, "www.example.org.")
		q.Peer.Limit = uint16(len(theirs))
		var w wire.Reply
		w.Reset(nil)
		if err := w.SetMsg(m); err != nil {
			t.Fatal(err)
		}
		got := finished(t, &w, q)
		if got.Truncated || len(got.Answer) != len(m.Answer) {
			t.Fatalf("%d octets do not suffice for us: %d of %d records", len(theirs), len(got.Answer), len(m.Answer))
		}
		for i, rr := range got.Answer {
			if rr.String() != m.Answer[i].String() {
				t.Fatalf("got\n%v\nwant\n%v", rr, m.Answer[i])
			}
		}
	}
}

// OPT records are no records of a reply: its own is made when it ends (RFC 6891 §6.1.1). A record that cannot be
// packed is an error that names it, and leaves the reply as it was.
func TestRecordsThatAreNotAdded(t *testing.T) {
	q := limitless(t, "www.example.org.")
	var w wire.Reply
	w.Reset(nil)
	w.Begin(q)
	if err := w.RR(wire.Additional, new(dns.Msg).SetEdns0(1232, true).IsEdns0()); err != nil || len(w.Recs()) != 0 {
		t.Errorf("OPT: %v, %d records", err, len(w.Recs()))
	}
	for what, rr := range map[string]dns.RR{
		"record a..b. A":                 &dns.A{Hdr: dns.RR_Header{Name: "a..b.", Rrtype: dns.TypeA, Class: 1}, A: []byte{192, 0, 2, 1}},
		"record www.example.org. A":      &dns.A{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeA, Class: 1}, A: []byte{1, 2, 3}},
		"record www.example.org. CNAME":  &dns.CNAME{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeCNAME, Class: 1}, Target: strings.Repeat("a", 64) + "."},
		"record www.example.org. DNSKEY": &dns.DNSKEY{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeDNSKEY, Class: 1}, PublicKey: "%"},
	} {
		before := len(w.Bytes())
		if err := w.RR(wire.Answer, rr); err == nil || !strings.Contains(err.Error(), what) || len(w.Recs()) != 0 || len(w.Bytes()) != before {
			t.Errorf("%s: %v, %d records", what, err, len(w.Recs()))
		}
	}
}

// Targets of SRV and DNAME records are written in full, by whatever method they are added (RFC 2782, RFC 6672 §2.5);
// those of NS, CNAME and PTR records are compressed.
func TestTargetsByMethods(t *testing.T) {
	q := limitless(t, "www.example.org.")
	name := wire.MustName("www.example.org")
	for what, tc := range map[string]struct {
		add  func(w *wire.Reply) bool
		want string
	}{
		"SRV":   {func(w *wire.Reply) bool { return w.SRV(wire.Answer, name, 1, 0x0102, 0x0304, 0x0506, name) }, "\x01\x02\x03\x04\x05\x06" + string(name)},
		"DNAME": {func(w *wire.Reply) bool { return w.Target(wire.Answer, name, wire.TypeDNAME, 1, name) }, string(name)},
		"NS":    {func(w *wire.Reply) bool { return w.Target(wire.Answer, name, wire.TypeNS, 1, name) }, "\xC0\x0C"},
		"CNAME": {func(w *wire.Reply) bool { return w.Target(wire.Answer, name, wire.TypeCNAME, 1, name) }, "\xC0\x0C"},
		"PTR":   {func(w *wire.Reply) bool { return w.Target(wire.Answer, name, wire.TypePTR, 1, name) }, "\xC0\x0C"},
	} {
		var w wire.Reply
		w.Reset(nil)
		w.Begin(q)
		if !tc.add(&w) || string(w.RData(0)) != tc.want {
			t.Errorf("%s: %q, want %q", what, w.RData(0), tc.want)
		}
	}
	for typ := range uint16(300) {
		if got, want := wire.Movable(typ), typ == dns.TypeA || typ == dns.TypeAAAA || typ == dns.TypeMX; got != want {
			t.Errorf("%s: movable %v", dns.Type(typ), got)
		}
	}
}
