package wire

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// raw is a message with a question for www.example.org. and answers that are octets; the question's name stands at 12,
// the first answer begins at 33.
func raw(answers ...string) []byte {
	b := append(make([]byte, HeaderLen), "\x03www\x07example\x03org\x00\x00\x01\x00\x01"...)
	b[2], b[5] = FlagQR>>8, 1
	binary.BigEndian.PutUint16(b[6:], uint16(len(answers)))
	return append(b, strings.Join(answers, "")...)
}

// record is one answer: an owner, a type, and RDATA.
func record(owner string, typ uint16, rdata string) string {
	b := append([]byte(owner), byte(typ>>8), byte(typ), 0, ClassIN, 0, 0, 0, 60)
	return string(append(binary.BigEndian.AppendUint16(b, uint16(len(rdata))), rdata...))
}

// Pointers of a message that is taken over may lead to owners and into RDATA, but not to a record's type, TTL or
// length: a name there would change when these are patched (RFC 1035 §4.1.4 speaks of names only). Such a message
// goes the slow way, and so does one with RDATA that is not as long as its type wants it.
func TestPointersToWhatIsNoName(t *testing.T) {
	const at = 33 // where the first record begins
	txt := record("\xC0\x0C", TypeTXT, "\x10......\x01a\x00.......")
	for _, tc := range []struct {
		what  string
		b     []byte
		taken bool
	}{
		{"to the question", raw(txt, record("\xC0\x0C", TypeA, "\xC0\x00\x02\x01")), true},
		{"to an owner", raw(record("\x01x\xC0\x0C", TypeA, "\xC0\x00\x02\x01"), record("\xC0\x21", TypeA, "\xC0\x00\x02\x01")), true},
		{"to a target", raw(record("\xC0\x0C", TypeCNAME, "\x01y\xC0\x10"), record("\xC0\x2D", TypeA, "\xC0\x00\x02\x01")), true},
		{"into a TXT record", raw(txt, record("\xC0\x34", TypeA, "\xC0\x00\x02\x01")), true},
		{"to a type that looks like the root", raw(record("\xC0\x0C", 65280, "x"), record("\xC0\x24", TypeA, "\xC0\x00\x02\x01")), false},
		{"to the type of a record", raw(txt, record("\xC0\x23", TypeA, "\xC0\x00\x02\x01")), false},
		{"to its TTL", raw(txt, record("\xC0\x27", TypeA, "\xC0\x00\x02\x01")), false},
		{"to the question's type", raw(txt, record("\xC0\x1D", TypeA, "\xC0\x00\x02\x01")), false},
		{"into the header", raw(txt, record("\xC0\x00", TypeA, "\xC0\x00\x02\x01")), false},
		{"to itself", raw(record("\xC0\x21", TypeA, "\xC0\x00\x02\x01")), false},
		{"an address of three octets", raw(record("\xC0\x0C", TypeA, "\xC0\x00\x02")), false},
		{"an IPv6 address of four", raw(record("\xC0\x0C", TypeAAAA, "\xC0\x00\x02\x01")), false},
		{"a TXT record of nothing", raw(record("\xC0\x0C", TypeTXT, "")), false},
		{"an exchange without a name", raw(record("\xC0\x0C", TypeMX, "\x00\x01")), false},
		{"a target that is cut", raw(record("\xC0\x0C", TypeCNAME, "\x03ab")), false},
		{"a signature without a signer", raw(record("\xC0\x0C", TypeRRSIG, string(make([]byte, 18)))), false},
		{"a compressed signer", raw(record("\xC0\x0C", TypeRRSIG, string(make([]byte, 18))+"\xC0\x0C")), false},
		{"a compressed NSEC name", raw(record("\xC0\x0C", dns.TypeNSEC, "\xC0\x0C\x00\x01\x40")), false},
		{"a compressed HTTPS target", raw(record("\xC0\x0C", dns.TypeHTTPS, "\x00\x01\xC0\x0C")), false},
		{"an unknown type", raw(record("\xC0\x0C", 65280, "anything")), true},
		{"a type that may hide names", raw(record("\xC0\x0C", dns.TypeRP, "\x00\x00")), false},
	} {
		q := query(t, "www.example.org.", TypeA, 1232)
		var w Reply
		w.Reset(nil)
		if got := w.LoadMessage(q, tc.b); got != tc.taken {
			t.Errorf("%s: taken over %v", tc.what, got)
		} else if got {
			m := unpack(t, tc.b)
			if s := lines(unpack(t, w.End(End{Limit: MaxMessage})).Answer); s != lines(m.Answer) {
				t.Errorf("%s: got\n%swant\n%s", tc.what, s, lines(m.Answer))
			}
		}
	}
	if off := strings.Index(string(raw(txt)), "\x01a\x00"); off != 0x34 || string(raw(txt)[at:at+2]) != "\xC0\x0C" {
		t.Fatalf("the name in the TXT record stands at %d", off)
	}
}

// A question whose count the header has wrong is left to github.com/miekg/dns, whatever it says of it.
func TestUnpackWithWrongCounts(t *testing.T) {
	for _, edns := range []bool{false, true} {
		m := question("www.example.org.", TypeA)
		if edns {
			m.SetEdns0(1232, true)
		}
		for i := 4; i < HeaderLen; i += 2 {
			for _, n := range []byte{0, 1, 2, 11} {
				b := packed(t, m)
				b[i+1] = n
				want := new(dns.Msg)
				wantErr := want.Unpack(b)
				got, err := UnpackQuery(b)
				if (err == nil) != (wantErr == nil) || err == nil && got.String() != want.String() {
					t.Errorf("count %d is %d: got\n%v %v\nwant\n%v %v", i, n, got, err, want, wantErr)
				}
			}
		}
	}
}

// Targets that are the question's name, or end in part of it, are pointers to it (RFC 1035 §4.1.4), also for replies
// without any other name.
func TestTargetsPointToTheQuestion(t *testing.T) {
	q := query(t, "a.b.example.org.", TypeCNAME, 1232)
	for target, want := range map[string]string{
		"a.b.example.org": "\xC0\x0C", "b.example.org": "\xC0\x0E", "example.org": "\xC0\x10", "org": "\xC0\x18", "x.org": "\x01x\xC0\x18",
		".": "\x00", "A.b.example.org": "\x01A\xC0\x0E", "net": "\x03net\x00",
	} {
		var w Reply
		w.Reset(nil)
		w.Begin(q)
		w.Target(Answer, q.Name(), TypeCNAME, 1, MustName(target))
		if got := string(w.RData(0)); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

// The way along aliases goes past what else stands at their owners, such as signatures, and past records of other
// classes (RFC 1034 §3.6.2).
func TestAnswersPastOthers(t *testing.T) {
	alias, sig := record("\xC0\x0C", TypeCNAME, "\x01y\x00"), record("\xC0\x0C", TypeRRSIG, string(make([]byte, 18))+"\x00sig")
	other := record("\xC0\x0C", 65280, "x")
	chaos := []byte(record("\xC0\x0C", TypeTXT, "\x01x"))
	chaos[5] = 3
	a := record("\x01y\x00", TypeA, "\xC0\x00\x02\x01")
	for what, tc := range map[string]struct {
		answers []string
		want    bool
	}{
		"signed":             {[]string{sig, alias, a}, true},
		"signed behind":      {[]string{alias, sig, a}, true},
		"others before":      {[]string{other, string(chaos), alias, a}, true},
		"in any order":       {[]string{a, other, sig, alias}, true},
		"an end that is not": {[]string{sig, alias}, false},
		"no alias":           {[]string{sig, other, a}, false},
		"many others":        {append(strings.Split(strings.Repeat(other+"|", 20), "|")[:20], alias, sig, a), true},
	} {
		q := query(t, "www.example.org.", TypeA, 0)
		var w Reply
		w.Reset(nil)
		if !w.LoadMessage(q, raw(tc.answers...)) {
			t.Fatalf("%s: not taken over", what)
		}
		if got := w.Answers(q); got != tc.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
