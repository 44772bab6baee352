package wire

import (
	"reflect"
	"testing"

	"github.com/miekg/dns"
)

// plainQueries are packets of queries, the first ones such as unpackPlain reads.
func plainQueries(t testing.TB) (packets [][]byte, plain int) {
	t.Helper()
	add := func(m *dns.Msg) {
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, b)
	}
	for _, name := range []string{".", "org.", "WWW.example.org.", `a\.b\000\"(.example.org.`} {
		add(new(dns.Msg).SetQuestion(name, dns.TypeA))
		add(new(dns.Msg).SetQuestion(name, dns.TypeAAAA).SetEdns0(1232, true))
	}
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeTXT)
	m.Opcode, m.Rcode, m.Zero, m.CheckingDisabled, m.AuthenticatedData, m.Truncated = dns.OpcodeNotify, 5, true, true, true, true
	add(m)
	plain = len(packets)
	m = new(dns.Msg).SetQuestion("example.org.", dns.TypeA).SetEdns0(1232, true)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"}}
	add(m)
	m = new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	m.Extra = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeA, Class: dns.ClassINET}}}
	add(m)
	m = new(dns.Msg).SetQuestion("example.org.", dns.TypeA).SetEdns0(1232, true)
	m.Rcode = dns.RcodeBadVers
	add(m)
	add(new(dns.Msg))
	b := packets[0]
	packets = append(packets, append(append([]byte{}, b...), 0), b[:len(b)-1], b[:5], append(append([]byte{}, b[:12]...), 0xC0, 12, 0, 1, 0, 1))
	return packets, plain
}

// same reports that UnpackQuery reads what the library reads, or nothing where that reads nothing.
func same(t *testing.T, packet []byte) {
	t.Helper()
	var want dns.Msg
	wantErr := want.Unpack(packet)
	got, err := UnpackQuery(packet)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: error %v, want %v", packet, err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got, &want) {
		t.Errorf("%x: got\n%#v, want\n%#v", packet, got, &want)
	}
}

func TestUnpackQuery(t *testing.T) {
	packets, plain := plainQueries(t)
	for i, b := range packets {
		if (unpackPlain(b) != nil) != (i < plain) {
			t.Errorf("%x: is plain: %t", b, i >= plain)
		}
		same(t, b)
	}
}

func FuzzUnpackQuery(f *testing.F) {
	packets, _ := plainQueries(f)
	for _, b := range packets {
		f.Add(b)
	}
	f.Fuzz(same)
}

func BenchmarkUnpackQuery(b *testing.B) {
	packet, _ := new(dns.Msg).SetQuestion("h998.small.bench.", dns.TypeAAAA).SetEdns0(1232, false).Pack()
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			UnpackQuery(packet)
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			new(dns.Msg).Unpack(packet)
		}
	})
}
