package wire

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func question(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	return m
}

func TestParse(t *testing.T) {
	m := question("wWw.Example.ORG.", dns.TypeAAAA)
	m.Id, m.CheckingDisabled = 4711, true
	m.SetEdns0(1232, true)
	m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"})
	var q Query
	if !q.Parse(packed(t, m)) {
		t.Fatal("not eligible")
	}
	if q.ID() != 4711 || !q.RD() || !q.CD() || q.AD() || q.Type() != dns.TypeAAAA || q.Class() != dns.ClassINET {
		t.Errorf("facts: %+v", q)
	}
	if Text(q.Name()) != "wWw.Example.ORG." || Text(q.Lower()) != "www.example.org." || q.Hash() != Hash(q.Lower()) {
		t.Errorf("name %s %s", Text(q.Name()), Text(q.Lower()))
	}
	if e := q.EDNS(); !e.Present || !e.DO() || e.Size != 1232 || e.Set != HasCookie {
		t.Errorf("EDNS: %+v", e)
	}
	if q.Limit() != 1232 {
		t.Errorf("limit %d", q.Limit())
	}
	if !bytes.Equal(q.Append(nil, 4711), q.Packet()) {
		t.Errorf("Append: %x, packet %x", q.Append(nil, 4711), q.Packet())
	}
}

func TestParseRefuses(t *testing.T) {
	ok := "123401000001000000000000076578616d706c65036f72670000010001"
	for _, tc := range []struct{ what, packet string }{
		{"empty", ""},
		{"eleven octets", "1234010000010000000000"},
		{"a response", "123481000001000000000000076578616d706c65036f72670000010001"},
		{"opcode STATUS", "123411000001000000000000076578616d706c65036f72670000010001"},
		{"no question", "123401000000000000000000"},
		{"two questions", "123401000002000000000000076578616d706c65036f72670000010001" + "076578616d706c65036f726700001c0001"},
		{"cut question", "123401000001000000000000076578616d70"},
		{"pointer", "123401000001000000000000c00c00010001"},
		{"label type", "123401000001000000000000876578616d706c65036f72670000010001"},
		{"class CH", "123401000001000000000000076578616d706c65036f72670000010003"},
		{"type AXFR", "123401000001000000000000076578616d706c65036f72670000fc0001"},
		{"type ANY", "123401000001000000000000076578616d706c65036f72670000ff0001"},
		{"type 0", "123401000001000000000000076578616d706c65036f72670000000001"},
		{"trailing octet", ok + "00"},
		{"OPT missing", "123401000001000000000001076578616d706c65036f72670000010001"},
		{"OPT of version 1", "123401000001000000000001076578616d706c65036f72670000010001" + "0000291000000100000000"},
		{"octet behind OPT", "123401000001000000000001076578616d706c65036f72670000010001" + "000029100000000000000000"},
		{"option cut short", "123401000001000000000001076578616d706c65036f72670000010001" + "0000291000000000000003000a00"},
		{"A record for OPT", "123401000001000000000001076578616d706c65036f72670000010001" + "000001000100000000000400000000"},
	} {
		b, err := hex.DecodeString(tc.packet)
		if err != nil {
			t.Fatal(tc.what, err)
		}
		if new(Query).Parse(b) {
			t.Errorf("%s: eligible", tc.what)
		}
	}
	b, _ := hex.DecodeString(ok)
	if !new(Query).Parse(b) {
		t.Error("a proper query is not eligible")
	}
}

func TestMarkRestore(t *testing.T) {
	var q Query
	if !q.Parse(packed(t, question("www.example.org.", dns.TypeA))) {
		t.Fatal("not eligible")
	}
	m := q.Mark()
	q.SetName(MustName("Other.example.NET"))
	q.SetType(dns.TypeAAAA)
	q.SetFlag(FlagRD, false)
	q.SetDeadline(time.Now())
	inner := q.Mark()
	q.SetName(MustName("third.example"))
	q.Restore(inner)
	if Text(q.Name()) != "Other.example.NET." || Text(q.Lower()) != "other.example.net." || q.Type() != dns.TypeAAAA || q.RD() || !q.Changed() {
		t.Errorf("changed query: %s %d", Text(q.Name()), q.Type())
	}
	r := new(dns.Msg)
	if err := r.Unpack(q.Append(nil, 7)); err != nil || r.Question[0].Name != "Other.example.NET." || r.RecursionDesired {
		t.Errorf("appended: %v %v", r, err)
	}
	q.Restore(m)
	if Text(q.Name()) != "www.example.org." || q.Type() != dns.TypeA || !q.RD() || q.Changed() || !q.Deadline().IsZero() {
		t.Errorf("restored query: %s %d", Text(q.Name()), q.Type())
	}
}

func TestSetMsg(t *testing.T) {
	m := question("WWW.example.org.", dns.TypeMX)
	m.AuthenticatedData = true
	m.SetEdns0(4096, true)
	var viaMsg, viaPacket Query
	if err := viaMsg.SetMsg(m, Peer{}); err != nil {
		t.Fatal(err)
	}
	viaPacket.Parse(packed(t, m))
	if got, want := viaMsg.Append(nil, 1), viaPacket.Append(nil, 1); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if viaMsg.Len() != viaPacket.Len() || viaMsg.Hash() != viaPacket.Hash() {
		t.Errorf("length %d and %d", viaMsg.Len(), viaPacket.Len())
	}
}

// FuzzParse: what is eligible unpacks, and to the same facts.
func FuzzParse(f *testing.F) {
	plain := question("www.example.org.", dns.TypeA)
	edns := question("x.", dns.TypeTXT)
	edns.SetEdns0(100, true)
	edns.IsEdns0().Option = []dns.EDNS0{
		&dns.EDNS0_COOKIE{Code: 10, Cookie: "0102030405060708"},
		&dns.EDNS0_SUBNET{Code: 8, Family: 1, SourceNetmask: 24, Address: []byte{192, 0, 2, 0}},
		&dns.EDNS0_TCP_KEEPALIVE{Code: 11},
		&dns.EDNS0_PADDING{Padding: make([]byte, 3)},
		&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")},
		&dns.EDNS0_EXPIRE{Code: 9, Empty: true},
		&dns.EDNS0_NSID{Code: 3},
	}
	for _, m := range []*dns.Msg{plain, edns} {
		f.Add(packed(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q Query
		if !q.Parse(b) {
			return
		}
		m := new(dns.Msg)
		if err := m.Unpack(b); err != nil {
			t.Fatalf("%x: eligible, but miekg/dns says %v", b, err)
		}
		if m.Response || m.Opcode != 0 || len(m.Question) != 1 || len(m.Answer)+len(m.Ns) != 0 || len(m.Extra) > 1 {
			t.Fatalf("%x: eligible: %v", b, m)
		}
		if Text(q.Name()) != m.Question[0].Name || q.Type() != m.Question[0].Qtype || q.Class() != m.Question[0].Qclass ||
			q.ID() != m.Id || q.RD() != m.RecursionDesired || q.CD() != m.CheckingDisabled || q.AD() != m.AuthenticatedData {
			t.Fatalf("%x: facts differ: %v", b, m)
		}
		opt := m.IsEdns0()
		if (opt != nil) != q.EDNS().Present {
			t.Fatalf("%x: EDNS differs: %v", b, m)
		}
		if opt != nil && (opt.Do() != q.DO() || opt.UDPSize() != q.EDNS().Size || opt.Version() != 0) {
			t.Fatalf("%x: EDNS differs: %v", b, opt)
		}
		if q.Len() != m.Len() && opt == nil {
			t.Fatalf("%x: %d octets, miekg/dns says %d", b, q.Len(), m.Len())
		}
	})
}

func BenchmarkParse(b *testing.B) {
	m := question("www.Example.org.", dns.TypeA)
	m.SetEdns0(1232, false)
	p := packed(b, m)
	var q Query
	b.ReportAllocs()
	for b.Loop() {
		if !q.Parse(p) {
			b.Fatal("not eligible")
		}
	}
}
