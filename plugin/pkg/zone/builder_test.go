package zone

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// builder is a Builder for example.org. with what it warns of.
func builder() (b *Builder, warnings *[]string) {
	warnings = new([]string)
	return NewBuilder(wire.MustName("example.org"), func(f string, a ...any) { *warnings = append(*warnings, fmt.Sprintf(f, a...)) }), warnings
}

// put adds records in presentation form.
func put(t testing.TB, b *Builder, records ...string) {
	t.Helper()
	for _, s := range records {
		rr, err := dns.NewRR(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
}

const soaText = "example.org. 300 IN SOA ns1.example.org. hostmaster.example.org. 7 7200 3600 1209600 60"

// Records of any type stand in the zone as they came, and are answered so: names that end in the origin are pointers in
// the types of RFC 1035 and octets in all others (RFC 3597 §4). Names of NS, CNAME, MX and SOA come in lower case.
func TestRecordsOfEveryType(t *testing.T) {
	for _, rdata := range []string{
		"A 192.0.2.1", "AAAA 2001:db8::1", "NS ns1.example.org.", "NS ns.example.net.", "CNAME web.example.org.", "CNAME .", "PTR Ptr.example.org.", "PTR example.org.",
		"MX 10 mail.example.org.", "MX 10 .", `TXT "one" "two"`, "SRV 1 2 443 Srv.example.org.", "SRV 0 0 0 .", "DNAME New.example.org.",
		"DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000", "NSEC next.example.org. A RRSIG NSEC", "DNSKEY 257 3 13 a2V5",
		`CAA 0 issue "ca.example.net"`, `SVCB 1 svc.example.org. alpn="h2"`, `HTTPS 0 .`, `NAPTR 100 50 "s" "http" "" _http._tcp.example.org.`, "RP a.example.org. b.example.org.",
		"AFSDB 1 afs.example.org.", "MINFO a.example.org. b.example.org.", "TLSA 3 1 1 00", "LOC 51 30 12.748 N 0 7 39.611 W 0.00m 0.00m 0.00m 0.00m", "TYPE65280 \\# 3 010203",
		`TXT "` + strings.Repeat("x", 255) + `" "` + strings.Repeat("y", 255) + `" "` + strings.Repeat("z", 255) + `" "` + strings.Repeat("w", 255) + `"`,
	} {
		b, warnings := builder()
		text := "x.example.org. 60 IN " + rdata
		put(t, b, soaText, text, text)
		z, err := b.Build()
		if err != nil || z.Records() != 2 || len(*warnings) != 0 {
			t.Fatalf("%s: %v, %d records, warnings %v", text, err, z.Records(), *warnings)
		}
		want, _ := dns.NewRR(text)
		owner := wire.MustName("x.example.org")
		n, _ := z.Lookup(owner, wire.Hash(owner))
		for r := range z.RecordsOf(owner, n.Set(want.Header().Rrtype)) {
			rr, err := r.RR()
			if err != nil || rr.String() != want.String() && want.Header().Rrtype != dns.TypeSVCB {
				t.Errorf("got\n%v %v\nwant\n%v", rr, err, want)
			}
		}
		if want.Header().Rrtype == dns.TypeNS || want.Header().Rrtype == dns.TypeCNAME || want.Header().Rrtype == dns.TypeNSEC {
			continue // a cut, an alias and a proof are not what is answered with
		}
		for _, asked := range []string{"x.example.org.", "x.Example.org."} { // the latter has no place to point to
			got := tell(t, z, dns.Question{Name: asked, Qtype: want.Header().Rrtype, Qclass: dns.ClassINET})
			if !got.answer[line(want, "")] || len(got.answer) != 1 {
				t.Errorf("%s: answered %v\nwant\n%v", asked, got, want)
			}
		}
	}
}

// Octets that are no RDATA of their type are an error that names the owner, and so is a record that cannot be packed.
func TestBadRecords(t *testing.T) {
	name := string(wire.MustName("a.example.org"))
	for _, tc := range []struct {
		typ   uint16
		rdata string
		want  string
	}{
		{wire.TypeNS, "", "bad name"}, {wire.TypeNS, "\x02a", "bad name"}, {wire.TypeCNAME, "\xC0\x0C", "bad name"}, {wire.TypeMX, "\x00", "too short"},
		{wire.TypeMX, "\x00\x01", "bad name"}, {wire.TypeSRV, "\x00\x01\x00\x02\x00", "too short"}, {wire.TypeSOA, name, "bad name"},
		{wire.TypeRRSIG, "\x00\x01" + string(make([]byte, 15)), "too short"}, {typeHTTPS, "\x00", "too short"}, {wire.TypeDNAME, "\x40", "bad name"},
	} {
		b, _ := builder()
		err := b.Add(wire.MustName("x.example.org"), tc.typ, 1, []byte(tc.rdata))
		if err == nil && tc.typ == wire.TypeSOA { // it is not at the apex
			err = b.Add(wire.MustName("example.org"), tc.typ, 1, []byte(tc.rdata))
		}
		if err == nil || !strings.Contains(err.Error(), "example.org.") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("type %d, %q: %v, want %s", tc.typ, tc.rdata, err, tc.want)
		}
	}
	b, _ := builder()
	if err := b.AddRR(&dns.A{Hdr: dns.RR_Header{Name: "a..b.", Rrtype: dns.TypeA, Class: 1}, A: []byte{1, 2, 3, 4}}); err == nil || !strings.Contains(err.Error(), "a..b. A") {
		t.Errorf("an owner that is no name: %v", err)
	}
	for text, refused := range map[string]bool{"x.example.org. TXT ": true, "x.example.org. A": true, "x.example.org. HINFO": false, "x.example.org. APL": false} {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddRR(rr); (err != nil) != refused {
			t.Errorf("%s, without data: %v", text, err)
		}
	}
	if rr, err := (Record{wire.MustName("x.example.org"), wire.TypeA, 1, []byte{1}}).RR(); err == nil || !strings.Contains(err.Error(), "x.example.org. A") {
		t.Errorf("RDATA of one octet is %v, %v", rr, err)
	}
	if err := b.Add(wire.MustName("example.org"), wire.TypeSOA, 1, []byte("\x00\x00\x00\x00\x00\x01")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "SOA record of example.org. is too short") {
		t.Errorf("a SOA record without numbers: %v", err)
	}
}

// A SOA record of another owner is taken for the zone's if that was wanted and no other came; the last of them counts.
func TestAdoptSOA(t *testing.T) {
	stray := strings.Replace(soaText, "example.org.", "other.test.", 1)
	later := strings.Replace(stray, " 7 ", " 9 ", 1)
	for _, tc := range []struct {
		what    string
		adopt   bool
		records []string
		serial  uint32
		warns   string
	}{
		{"not wanted", false, []string{stray}, 0, "record other.test. is not in zone example.org.: left out"},
		{"wanted", true, []string{stray}, 7, "taken for the zone's, which has none"},
		{"the last one", true, []string{stray, later}, 9, "taken for the zone's"},
		{"the zone has one", true, []string{soaText, later}, 7, "SOA record of other.test. is not at the apex of zone example.org.: left out"},
		{"the zone gets one", true, []string{later, soaText}, 7, "left out"},
		{"of a name in the zone", true, []string{strings.Replace(soaText, "example.org.", "sub.example.org.", 1)}, 7, "SOA record of sub.example.org."},
		{"none at all", true, []string{"www.example.org. A 192.0.2.1"}, 0, ""},
	} {
		b, warnings := builder()
		if tc.adopt {
			b.AdoptSOA()
		}
		put(t, b, tc.records...)
		z, err := b.Build()
		if tc.serial == 0 {
			if !errors.Is(err, ErrNoSOA) {
				t.Errorf("%s: %v", tc.what, err)
			}
		} else if err != nil || z.Serial() != tc.serial {
			t.Errorf("%s: %v, serial %d", tc.what, err, z.Serial())
		}
		if got := strings.Join(*warnings, "\n"); tc.warns == "" && got != "" || !strings.Contains(got, tc.warns) {
			t.Errorf("%s: warns of %q, want %q", tc.what, got, tc.warns)
		}
	}
}

// A record of a type that is for questions or messages only is left out: an OPT record in an answer section makes a
// message that nobody reads, and no query leads to the others.
func TestMetaTypesAreLeftOut(t *testing.T) {
	b, warnings := builder()
	put(t, b, soaText)
	var want []string
	for _, typ := range []uint16{0, dns.TypeOPT, 128, 200, dns.TypeTKEY, dns.TypeTSIG, dns.TypeIXFR, dns.TypeAXFR, dns.TypeMAILB, dns.TypeANY} {
		if err := b.Add(wire.MustName("x.example.org"), typ, 60, []byte{0, 10, 0, 0}); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("record x.example.org. has type %s, which is for messages only: left out", dns.Type(typ)))
	}
	for _, typ := range []uint16{127, 256, dns.TypeReserved} { // beside them
		if err := b.Add(wire.MustName("y.example.org"), typ, 60, []byte{0, 10, 0, 0}); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil || z.Records() != 4 || !slices.Equal(*warnings, want) {
		t.Errorf("%v, %d records, warnings %q", err, z.Records(), *warnings)
	}
}

// All records of an RRset have one TTL, the least (RFC 2181 §5.2). Who knows where records stand is told where one has
// another; of many RRsets the first ten are named and the others counted.
func TestWarningsOfTTLs(t *testing.T) {
	b, warnings := builder()
	b.At("db.one", 3)
	put(t, b, soaText, "a.example.org. 50 A 192.0.2.1")
	b.At("db.two", 8)
	put(t, b, "a.example.org. 40 A 192.0.2.2")
	b.At("db.one", 9)
	put(t, b, "a.example.org. 60 A 192.0.2.3", "b.example.org. 60 TXT x")
	for i := range 14 {
		put(t, b, fmt.Sprintf("m%d.example.org. 9 TXT x", i), fmt.Sprintf("m%d.example.org. 8 TXT y", i))
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := ttls(z, "a.example.org"); got != "A 40 A 40 A 40" {
		t.Errorf("TTLs %s", got)
	}
	if !slices.Contains(*warnings, "db.two:8: the records of a.example.org., type A, have several TTLs: the least, 40, counts for all") {
		t.Errorf("warnings %q", *warnings)
	}
	if n := len(*warnings); n != 11 || (*warnings)[10] != "5 more RRsets of zone example.org. have several TTLs" || !strings.HasPrefix((*warnings)[9], "db.one:9: ") {
		t.Errorf("%d warnings: %q", n, *warnings)
	}
}

// NSEC and RRSIG records may stand beside a CNAME record (RFC 4035 §2.5), other data is warned of.
func TestWarningsOfCNAMEs(t *testing.T) {
	for records, warns := range map[string]bool{
		"":              false,
		"NSEC z. CNAME": false,
		"RRSIG CNAME 13 3 60 20450101000000 20200101000000 1 example.org. d3d3": false,
		"TXT x":              true,
		"DNAME example.net.": true,
	} {
		b, warnings := builder()
		put(t, b, soaText, "x.example.org. 60 CNAME y.example.org.")
		if records != "" {
			put(t, b, "x.example.org. 60 "+records)
		}
		if _, err := b.Build(); err != nil || (len(*warnings) > 0) != warns {
			t.Errorf("beside %q: %v, warnings %q", records, err, *warnings)
		}
	}
}

// A table has no SOA record and is good for what stands at a name; a zone of many names lies in several pieces of
// memory, and all names are found there.
func TestManyNames(t *testing.T) {
	const n = 40000
	b, _ := builder()
	pad := strings.Repeat("x", 200)
	for i := range n {
		put := fmt.Sprintf("n%d", i)
		name, _ := wire.AppendName(nil, put+".example.org.")
		if err := b.Add(name, wire.TypeTXT, uint32(i), append([]byte{byte(len(pad))}, pad...)); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.BuildTable()
	if err != nil {
		t.Fatal(err)
	}
	if z.Records() != n || z.Names() != n+1 || z.Size() < n*200 || z.Signed() || z.Serial() != 0 || len(z.chunks) < 2 {
		t.Errorf("%d records of %d names in %d octets and %d pieces", z.Records(), z.Names(), z.Size(), len(z.chunks))
	}
	before := z.Size()
	last := []byte(nil)
	names := 0
	for name, node := range z.Nodes() {
		if last != nil && wire.Compare(last, name) >= 0 {
			t.Fatalf("%q stands behind %q", name, last)
		}
		last = append(last[:0], name...)
		if found, ok := z.Lookup(name, wire.Hash(name)); !ok || &found[0] != &node[0] {
			t.Fatalf("%q is not found", name)
		}
		names++
	}
	if names != n+1 || z.Size() != before+4*(n+1) {
		t.Errorf("%d names in order, %d octets more", names, z.Size()-before)
	}
	if a := z.Apex(); !a.Empty() || len(a.Name(z)) != len(z.Origin()) {
		t.Errorf("apex %q", a)
	}
}

// A walk over names may end before their end.
func TestNodesEnd(t *testing.T) {
	z := build(t, "example.org.", apex+"a A 192.0.2.1\na TXT x\na MX 1 a\nb A 192.0.2.1\nb A 192.0.2.2\n")
	n := 0
	for name, node := range z.Nodes() {
		for set := range node.Sets() {
			for range z.RecordsOf(name, set) {
				n++
				break
			}
			break
		}
		if n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d names", n)
	}
}
