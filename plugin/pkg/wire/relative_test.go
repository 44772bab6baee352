package wire

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// A pointer to the origin is the place in the question where it stands octet by octet, at the begin of a label: another
// case, or octets within a label, are not it.
func TestPointerToOrigin(t *testing.T) {
	for _, tc := range []struct {
		question, origin string
		want             uint16
	}{
		{"www.example.org.", "example.org.", 0xC000 | HeaderLen + 4},
		{"example.org.", "example.org.", 0xC000 | HeaderLen},
		{"www.example.org.", ".", 0xC000 | HeaderLen + 16},
		{".", ".", 0xC000 | HeaderLen},
		{"www.Example.org.", "example.org.", 0},
		{"WWW.example.org.", "example.org.", 0xC000 | HeaderLen + 4},
		{"www.example.net.", "example.org.", 0},
		{"org.", "example.org.", 0},
		{`x\007example\003org.`, "example.org.", 0}, // as octets, one label ends in the origin
		{`a.b\003org.`, "org.", 0},
	} {
		var w Reply
		w.Reset(nil)
		w.Begin(query(t, tc.question, TypeA, 0))
		if got := w.Pointer(MustName(tc.origin)); got != tc.want {
			t.Errorf("%s in %s: %#x, want %#x", tc.origin, tc.question, got, tc.want)
		}
	}
}

// Owners are prefixes and pointers: records of one owner after the first point to it, as far as pointers reach (RFC
// 1035 §4.1.4), and the message counts them in full.
func TestRelativeOwners(t *testing.T) {
	origin := MustName("example.org")
	q := query(t, "www.example.org.", TypeTXT, 0)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	pointer := w.Pointer(origin)
	prefix := []byte("\x01a\x01b")
	o := Owner{Prefix: prefix, Pointer: pointer, Len: len(prefix) + len(origin)}
	txt := []byte("\x04text")
	for range 3 {
		if !w.Relative(Answer, o, TypeTXT, 60, txt, nil, 0, len(txt)) {
			t.Fatal("no room")
		}
		o = o.At(w.Recs()[len(w.Recs())-1])
	}
	if first := w.Recs()[0].Off; o.Prefix != nil || o.Pointer != 0xC000|first || o.Len != len("\x01a\x01b\x07example\x03org\x00") {
		t.Errorf("owner %+v, the first record stands at %d", o, first)
	}
	qo := w.QuestionOwner()
	w.Relative(Authority, qo, TypeTXT, 60, txt, nil, 0, len(txt))
	if again := qo.At(w.Recs()[3]); again.Pointer != qo.Pointer || qo.Len != len(q.Name()) {
		t.Errorf("the question's owner is %+v, and then %+v", qo, again)
	}
	full := Owner{Prefix: MustName("other.example.net"), Len: len(MustName("other.example.net"))}
	w.Relative(Additional, full, TypeTXT, 60, txt, nil, 0, len(txt))
	w.Relative(Additional, full.At(w.Recs()[4]), TypeTXT, 60, txt, nil, 0, len(txt))
	plain := w.PlainLen()
	m := unpack(t, w.End(End{Limit: MaxMessage}))
	if m.Compress = false; plain != m.Len() {
		t.Errorf("plain length %d, want %d", plain, m.Len())
	}
	want := strings.Repeat("a.b.example.org. 60 IN TXT \"text\"\n", 3) + "www.example.org. 60 IN TXT \"text\"\n" + strings.Repeat("other.example.net. 60 IN TXT \"text\"\n", 2)
	if got := lines(m.Answer) + lines(m.Ns) + lines(m.Extra); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	far := full.At(Rec{Off: maxPointer + 1})
	if near := full.At(Rec{Off: maxPointer}); far.Pointer != 0 || len(far.Prefix) == 0 || near.Pointer != 0xFFFF || near.Prefix != nil {
		t.Errorf("owners at the end of what pointers reach: %+v and %+v", near, far)
	}
	for off, want := range map[int]bool{HeaderLen: true, maxPointer: true, maxPointer + 1: false} {
		if o, ok := OwnerAt(off, 9); ok != want || ok && (o.Pointer != 0xC000|uint16(off) || o.Len != 9) {
			t.Errorf("at %d: %+v %v", off, o, ok)
		}
	}
}

// Names in RDATA that end in the origin are pointers, put where the zone tells; a target that is made for the query is
// written in full but for what the message has.
func TestRelativeData(t *testing.T) {
	q := query(t, "www.example.org.", TypeMX, 0)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	pointer := w.Pointer(MustName("example.org"))
	soa := "\x03ns1\x00\x00\x04host\x00\x00" + string(make([]byte, 19)) + "\x07"
	w.Relative(Answer, w.QuestionOwner(), TypeMX, 1, []byte("\x00\x0A\x04mail\x00\x00"), []byte{0, 7}, pointer, 2+len(MustName("mail.example.org")))
	w.Relative(Authority, Owner{Pointer: pointer, Len: len(MustName("example.org"))}, TypeSOA, 2, []byte(soa), []byte{0, 4, 0, 11}, pointer,
		20+len(MustName("ns1.example.org"))+len(MustName("host.example.org")))
	w.TargetOf(Additional, w.QuestionOwner(), TypeCNAME, 3, MustName("new.www.example.org"))
	at := len(w.Bytes())
	w.TargetOf(Additional, Owner{Prefix: []byte("\x01x"), Pointer: pointer, Len: 15}, TypeCNAME, 4, MustName("new.www.example.org"))
	if n := len(w.Bytes()) - at; n != 2+2+10+2 {
		t.Errorf("the second alias takes %d octets", n)
	}
	plain := w.PlainLen()
	m := unpack(t, w.End(End{Limit: MaxMessage}))
	if m.Compress = false; plain != m.Len() {
		t.Errorf("plain length %d, want %d", plain, m.Len())
	}
	want := "www.example.org. 1 IN MX 10 mail.example.org.\nexample.org. 2 IN SOA ns1.example.org. host.example.org. 0 0 0 0 7\n" +
		"www.example.org. 3 IN CNAME new.www.example.org.\nx.example.org. 4 IN CNAME new.www.example.org.\n"
	if got := lines(m.Answer) + lines(m.Ns) + lines(m.Extra); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// What is looked up is found under exactly the name, under the longest that it lies below, and so on up to the root.
func TestClimb(t *testing.T) {
	var s Suffixes[string]
	if _, ok := s.Get(Root); ok || s.Len() != 0 {
		t.Error("the empty one has something")
	}
	for _, n := range []string{"example.org.", "a.b.example.org.", "net."} {
		s.Set(MustName(n), "old")
		s.Set(MustName(n), n)
	}
	if s.Len() != 3 {
		t.Errorf("%d names, want 3", s.Len())
	}
	climb := func(name string) (way []string, atRoot bool) {
		var c Climb[string]
		c.Start(&s, MustName(name))
		for {
			v, before, ok := c.Next()
			if !ok {
				return way, atRoot
			}
			if want := dns.CountLabel(name) - dns.CountLabel(v); before != want {
				t.Errorf("%s: %d labels before %s, want %d", name, before, v, want)
			}
			way, atRoot = append(way, v), c.AtRoot()
		}
	}
	for _, root := range []bool{false, true} {
		if root {
			s.Set(Root, ".")
		}
		for name, want := range map[string]string{
			"x.a.b.example.org.": "a.b.example.org. example.org.", "a.b.example.org.": "a.b.example.org. example.org.", "b.example.org.": "example.org.",
			"ab.example.org.": "example.org.", "org.": "", "net.": "net.", "xnet.": "", ".": "",
		} {
			way, at := climb(name)
			if root {
				want = strings.TrimSpace(want + " .")
			}
			if got := strings.Join(way, " "); got != want || at != root {
				t.Errorf("%s: %s, want %s; at the root %v", name, got, want, at)
			}
			v, ok := s.Longest(MustName(name))
			if first, _, _ := strings.Cut(want, " "); v != first || ok != (want != "") {
				t.Errorf("%s: longest %q, want %q", name, v, first)
			}
			if got, ok := s.Get(MustName(name)); ok != (got == name) || ok && v != name {
				t.Errorf("%s: exactly %q", name, got)
			}
		}
	}
}
