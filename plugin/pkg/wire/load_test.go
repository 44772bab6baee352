package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// message is a reply with the records given: an empty string begins the next section.
func message(t testing.TB, name string, typ uint16, records ...string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, typ)
	m.Response, m.RecursionAvailable = true, true
	m.Compress = true
	sections := []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra}
	for _, text := range records {
		if text == "" {
			sections = sections[1:]
			continue
		}
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		*sections[0] = append(*sections[0], rr)
	}
	return m
}

// parsed is the query for m's question, as a client sends it.
func parsed(t testing.TB, name string, typ uint16) *wire.Query {
	t.Helper()
	r := new(dns.Msg)
	r.SetQuestion(name, typ)
	b, err := r.Pack()
	if err != nil {
		t.Fatal(err)
	}
	q := new(wire.Query)
	if !q.Parse(b) {
		t.Fatalf("%s is not eligible", name)
	}
	return q
}

func records(m *dns.Msg) string {
	var b strings.Builder
	for _, s := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range s {
			if rr.Header().Rrtype != dns.TypeOPT {
				b.WriteString(rr.String() + "\n")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestLoadMessage(t *testing.T) {
	glue := []string{"", "example.org. 60 NS ns1.example.org.", "", "ns1.example.org. 60 A 192.0.2.1", "ns1.example.org. 60 AAAA 2001:db8::1"}
	for name, m := range map[string]*dns.Msg{
		"addresses": message(t, "www.example.org.", dns.TypeA, "www.example.org. 60 A 192.0.2.1", "www.example.org. 60 A 192.0.2.2"),
		"alias":     message(t, "www.example.org.", dns.TypeA, "www.example.org. 60 CNAME a.example.com.", "a.example.com. 30 A 192.0.2.1"),
		"denial":    message(t, "nope.example.org.", dns.TypeA, "", "example.org. 60 SOA ns1.example.org. host.example.org. 1 2 3 4 5"),
		"referral":  message(t, "www.example.org.", dns.TypeA, glue...),
		"mail":      message(t, "example.org.", dns.TypeMX, "example.org. 60 MX 10 mx1.example.org.", "example.org. 60 MX 20 mx2.example.org.", "", "", "mx1.example.org. 60 A 192.0.2.1", "mx2.example.org. 60 A 192.0.2.2"),
		"text":      message(t, "example.org.", dns.TypeTXT, `example.org. 60 TXT "a" "b"`),
		"signed":    message(t, "example.org.", dns.TypeTXT, `example.org. 60 TXT "a"`, "example.org. 60 RRSIG TXT 13 2 60 20300101000000 20200101000000 1 example.org. AAAA", "", "example.org. 60 NSEC a.example.org. TXT", "example.org. 60 DS 1 13 2 AABB"),
		"service":   message(t, "_s._tcp.example.org.", dns.TypeSRV, "_s._tcp.example.org. 60 SRV 1 2 3 a.example.org.", "", "", "a.example.org. 60 A 192.0.2.1"),
		"https":     message(t, "example.org.", dns.TypeHTTPS, "example.org. 60 HTTPS 1 . alpn=h2"),
	} {
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var w wire.Reply
		w.Reset(make([]byte, 0, 512))
		q := parsed(t, strings.ToUpper(m.Question[0].Name), m.Question[0].Qtype)
		if !w.LoadMessage(q, b) {
			t.Errorf("%s: not taken over", name)
			continue
		}
		plain := *m
		plain.Compress = false
		if w.PlainLen() != plain.Len() {
			t.Errorf("%s: length %d, want %d", name, w.PlainLen(), plain.Len())
		}
		got := new(dns.Msg)
		if err := got.Unpack(w.Finish(q, 1232)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if g, want := strings.ToLower(records(got)), strings.ToLower(records(m)); g != want {
			t.Errorf("%s:\n%swant\n%s", name, g, want)
		}
		if !got.RecursionAvailable || got.Question[0].Name != strings.ToUpper(m.Question[0].Name) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What was loaded can be put into another order, kept, and given again.
func TestLoadedRecordsMove(t *testing.T) {
	m := message(t, "example.org.", dns.TypeMX, "example.org. 60 MX 10 mx1.example.org.", "example.org. 60 MX 20 mx2.example.org.", "", "", "mx1.example.org. 60 A 192.0.2.1", "mx2.example.org. 60 A 192.0.2.2")
	b, _ := m.Pack()
	q := parsed(t, "example.org.", dns.TypeMX)
	var w, again wire.Reply
	w.Reset(nil)
	again.Reset(nil)
	if !w.LoadMessage(q, b) {
		t.Fatal("not taken over")
	}
	p := w.Pack()
	again.Load(&p, q)
	again.Reorder([]uint16{1, 0, 3, 2})
	got := new(dns.Msg)
	if err := got.Unpack(again.Finish(q, 1232)); err != nil {
		t.Fatal(err)
	}
	want := "example.org.\t60\tIN\tMX\t20 mx2.example.org.\nexample.org.\t60\tIN\tMX\t10 mx1.example.org.\n\n\n" +
		"mx2.example.org.\t60\tIN\tA\t192.0.2.2\nmx1.example.org.\t60\tIN\tA\t192.0.2.1\n\n"
	if records(got) != want {
		t.Errorf("got\n%swant\n%s", records(got), want)
	}
}

func TestLoadMessageWithOPT(t *testing.T) {
	m := message(t, "www.example.org.", dns.TypeA, "www.example.org. 60 A 192.0.2.1")
	m.SetEdns0(1232, true)
	m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_EDE{InfoCode: 3})
	b, _ := m.Pack()
	q := parsed(t, "www.example.org.", dns.TypeA)
	var w wire.Reply
	w.Reset(nil)
	if !w.LoadMessage(q, b) {
		t.Fatal("not taken over")
	}
	if flags, ok := w.OPT(); !ok || flags != 0x8000 {
		t.Errorf("OPT record: %x %v", flags, ok)
	}
	if data, ok := w.Option(wire.OptionEDE); !ok || !bytes.Equal(data, []byte{0, 3}) {
		t.Errorf("option: %x %v", data, ok)
	}
	length := w.PlainLen()
	w.DropOPT()
	if _, ok := w.OPT(); ok || w.PlainLen() != length-17 {
		t.Errorf("after DropOPT: %v, %d octets of %d", ok, w.PlainLen(), length)
	}
	for what, spoil := range map[string]func([]byte) []byte{
		"another question":        func(b []byte) []byte { b[13] = 'x'; return b },
		"another type":            func(b []byte) []byte { b[30]++; return b },
		"cut short":               func(b []byte) []byte { return b[:len(b)-1] },
		"more than the last":      func(b []byte) []byte { return append(b, 0) },
		"extended return code":    func(b []byte) []byte { b[len(b)-12] = 1; return b },
		"a pointer forwards":      func(b []byte) []byte { b[34] = 200; return b },
		"a type that hides names": func(b []byte) []byte { b[36] = 17; return b },
	} {
		w.Reset(nil)
		if w.LoadMessage(q, spoil(bytes.Clone(b))) {
			t.Errorf("taken over in spite of: %s", what)
		}
	}
}

// What can be unpacked and is taken over has the same records then.
func FuzzLoadMessage(f *testing.F) {
	for _, m := range []*dns.Msg{
		message(f, "www.example.org.", dns.TypeA, "www.example.org. 60 CNAME a.example.com.", "a.example.com. 30 A 192.0.2.1"),
		message(f, "example.org.", dns.TypeMX, "example.org. 60 MX 10 mx1.example.org.", "", "", "mx1.example.org. 60 A 192.0.2.1"),
		message(f, "example.org.", dns.TypeSOA, "example.org. 60 SOA ns1.example.org. host.example.org. 1 2 3 4 5"),
	} {
		m.SetEdns0(1232, true)
		b, _ := m.Pack()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(dns.Msg)
		if len(b) < wire.HeaderLen || wire.NameLen(b[wire.HeaderLen:]) == 0 {
			return
		}
		n := wire.HeaderLen + wire.NameLen(b[wire.HeaderLen:]) + 4
		if n > len(b) {
			return
		}
		query := append([]byte{0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, b[wire.HeaderLen:n]...)
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(query) || !w.LoadMessage(&q, b) {
			return
		}
		if m.Unpack(b) != nil {
			return
		}
		got := new(dns.Msg)
		q.Peer.Limit = wire.MaxMessage
		if err := got.Unpack(w.Finish(&q, 1232)); err != nil {
			t.Fatalf("what was made of it cannot be unpacked: %v", err)
		}
		if records(got) != records(m) {
			t.Fatalf("got\n%swant\n%s", records(got), records(m))
		}
	})
}

func BenchmarkLoadMessage(b *testing.B) {
	m := message(b, "www.example.org.", dns.TypeA, "www.example.org. 60 CNAME a.example.com.", "a.example.com. 30 A 192.0.2.1", "a.example.com. 30 A 192.0.2.2")
	m.SetEdns0(1232, true)
	packet, _ := m.Pack()
	q := parsed(b, "www.example.org.", dns.TypeA)
	var w wire.Reply
	buf := make([]byte, 0, 1536)
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(buf)
		if !w.LoadMessage(q, packet) {
			b.Fatal("not taken over")
		}
	}
}

// AppendFinished tells what Finish returns, and nothing else changes.
func TestAppendFinished(t *testing.T) {
	m := message(t, "example.org.", dns.TypeMX, "example.org. 60 MX 10 mx1.example.org.", "", "", "mx1.example.org. 60 A 192.0.2.1")
	b, _ := m.Pack()
	for _, limit := range []uint16{0, 60} {
		q := parsed(t, "example.org.", dns.TypeMX)
		q.Peer.Limit = limit
		q.EDNS().Present, q.EDNS().Size = true, 1232
		var w wire.Reply
		w.Reset(nil)
		if !w.LoadMessage(q, b) {
			t.Fatal("not taken over")
		}
		told := w.AppendFinished([]byte("before"), q, 1232)
		if sent := w.Finish(q, 1232); string(told) != "before"+string(sent) || len(sent) < 40 {
			t.Errorf("told\n%x\nsent\n%x", told[6:], sent)
		}
	}
}
