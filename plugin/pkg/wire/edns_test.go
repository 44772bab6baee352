package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// withOptions is a query with an OPT record of some octets as its options.
func withOptions(options []byte) []byte {
	b := []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x03org\x00\x00\x01\x00\x01")
	b = append(b, 0, 0, TypeOPT, 0x04, 0xD0, 0, 0, 0x80, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(options)))
	return append(b, options...)
}

// option is AppendOption to nothing.
func option(code uint16, data string) []byte { return AppendOption(nil, code, []byte(data)) }

// What an option of each code may hold in a query, by the RFC that has it; a query with another is for the message
// lane. What is eligible, github.com/miekg/dns can read.
func TestOptionsOfQueries(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	for _, tc := range []struct {
		what string
		b    []byte
		set  OptionSet // 0 and no octets, or not eligible
	}{
		{"none", nil, 0},
		{"NSID", option(OptionNSID, ""), HasNSID},
		{"NSID with data", option(OptionNSID, "x"), HasNSID},
		{"no subnet", option(OptionECS, zeros(4)), HasECS}, // RFC 7871 §6
		{"no subnet of 8 bits", option(OptionECS, "\x00\x00\x08\x00"), 0},
		{"subnet of 24 bits", option(OptionECS, "\x00\x01\x18\x00\xC0\x00\x02"), HasECS},
		{"subnet of 32 bits", option(OptionECS, "\x00\x01\x20\x20\xC0\x00\x02\x01"), HasECS},
		{"subnet of 33 bits", option(OptionECS, "\x00\x01\x21\x00\xC0\x00\x02\x01"), 0},
		{"scope of 33 bits", option(OptionECS, "\x00\x01\x20\x21\xC0\x00\x02\x01"), 0},
		{"subnet of five octets", option(OptionECS, "\x00\x01\x20\x00\xC0\x00\x02\x01\x00"), 0},
		{"IPv6 subnet", option(OptionECS, "\x00\x02\x38\x00\x20\x01\x0d\xb8\x00\x00\x00"), HasECS},
		{"IPv6 subnet of 128 bits", option(OptionECS, "\x00\x02\x80\x80"+zeros(16)), HasECS},
		{"IPv6 subnet of 129 bits", option(OptionECS, "\x00\x02\x81\x00"+zeros(16)), 0},
		{"IPv6 scope of 129 bits", option(OptionECS, "\x00\x02\x80\x81"+zeros(16)), 0},
		{"IPv6 subnet of 17 octets", option(OptionECS, "\x00\x02\x80\x00"+zeros(17)), 0},
		{"subnet of 24 bits in four octets", option(OptionECS, "\x00\x01\x18\x00\xC0\x00\x02\x01"), 0}, // of which the message lane takes three
		{"IPv6 subnet of 84 bits in seven octets", option(OptionECS, "\x00\x02\x54\x00"+zeros(7)), 0},
		{"subnet of family 3", option(OptionECS, "\x00\x03\x00\x00"), 0},
		{"subnet of three octets", option(OptionECS, "\x00\x01\x00"), 0},
		{"expire", option(OptionExpire, ""), HasExpire}, // RFC 7314 §2
		{"expire of four octets", option(OptionExpire, zeros(4)), HasExpire},
		{"expire of three octets", option(OptionExpire, zeros(3)), 0},
		{"expire of one octet", option(OptionExpire, zeros(1)), 0},
		{"expire of seven octets", option(OptionExpire, zeros(7)), 0}, // of which the message lane takes four
		{"cookie", option(OptionCookie, zeros(8)), HasCookie},         // RFC 7873 §4
		{"cookie of seven octets", option(OptionCookie, zeros(7)), 0},
		{"keepalive", option(OptionKeepalive, ""), HasKeepalive}, // RFC 7828 §3.1
		{"keepalive of a time", option(OptionKeepalive, zeros(2)), HasKeepalive},
		{"keepalive of one octet", option(OptionKeepalive, zeros(1)), 0},
		{"keepalive of three octets", option(OptionKeepalive, zeros(3)), 0},
		{"padding", option(OptionPadding, zeros(100)), HasPadding}, // RFC 7830 §3
		{"unknown", option(65001, "x"), HasOther},
		{"the reserved code", option(0, ""), HasOther},
		{"LLQ", option(OptionLLQ, zeros(18)), 0},
		{"UL", option(OptionUL, zeros(4)), 0},
		{"extended error", option(OptionEDE, zeros(2)), 0},
		{"report channel", option(OptionReporting, "\x00"), 0},
		{"zone version", option(OptionZoneVersion, ""), 0},
		{"several", bytes.Join([][]byte{option(OptionNSID, ""), option(OptionCookie, zeros(24)), option(OptionPadding, "")}, nil), HasNSID | HasCookie | HasPadding},
		{"one that is bad behind one that is not", append(option(OptionNSID, ""), option(OptionCookie, "x")...), 0},
		{"a code alone", []byte{0, 3}, 0},
		{"three octets", []byte{0, 3, 0}, 0},
		{"longer than the rest", []byte{0, 3, 0, 2, 0}, 0},
		{"an octet behind the last", append(option(OptionNSID, ""), 0), 0},
	} {
		b := withOptions(tc.b)
		var q Query
		eligible := q.Parse(b)
		if want := tc.set != 0 || len(tc.b) == 0; eligible != want {
			t.Errorf("%s: eligible %v", tc.what, eligible)
			continue
		}
		if !eligible {
			continue
		}
		e := q.EDNS()
		if e.Set != tc.set || !bytes.Equal(e.Options, tc.b) || !e.DO() || e.Size != 1232 {
			t.Errorf("%s: %+v", tc.what, e)
		}
		if got := unpack(t, b).IsEdns0(); got == nil {
			t.Errorf("%s: miekg/dns has no OPT record", tc.what)
		}
		if !bytes.Equal(q.Append(nil, 0x1234), b) {
			t.Errorf("%s: goes upstream as\n%x, came as\n%x", tc.what, q.Append(nil, 0x1234), b)
		}
	}
}

// The parts of an OPT record that the options are not (RFC 6891 §6.1.2, §6.1.3): a root owner, version 0, a length that
// ends where the message does. Its upper rcode bits mean nothing in a query.
func TestOPTRecordOfQueries(t *testing.T) {
	at := len(withOptions(nil)) - 11
	for _, tc := range []struct {
		what     string
		off      int
		octet    byte
		eligible bool
	}{
		{"as it is", 0, 0, true},
		{"an owner that is not the root", 0, 1, false},
		{"another type", 2, TypeA, false},
		{"upper bits of the type", 1, 1, false},
		{"another size", 3, 0xFF, true},
		{"an extended rcode", 5, 1, true},
		{"version 1", 6, 1, false},
		{"no DO", 7, 0, true},
		{"a Z bit", 8, 1, true},
		{"options of one octet", 10, 1, false},
		{"options of 256 octets", 9, 1, false},
	} {
		b := withOptions(nil)
		b[at+tc.off] = tc.octet
		var q Query
		if got := q.Parse(b); got != tc.eligible {
			t.Errorf("%s: eligible %v", tc.what, got)
		}
	}
	if new(Query).Parse(withOptions(nil)[:len(withOptions(nil))-1]) {
		t.Error("an OPT record that is cut short is eligible")
	}
}

// The DO bit is set and cleared alone (RFC 3225 §3).
func TestSetDO(t *testing.T) {
	e := EDNS{Flags: 0x0001}
	for _, on := range []bool{true, true, false, false} {
		if e.SetDO(on); e.DO() != on || e.Flags&^OPTFlagDO != 1 {
			t.Errorf("DO %v: flags %#x", on, e.Flags)
		}
	}
}

// Option finds the first option of a code, also one without data, and none in what is cut short.
func TestOption(t *testing.T) {
	e := EDNS{Options: bytes.Join([][]byte{option(10, "first"), option(12, ""), option(10, "second")}, nil)}
	for _, tc := range []struct {
		code uint16
		want string
		ok   bool
	}{{10, "first", true}, {12, "", true}, {3, "", false}} {
		if data, ok := e.Option(tc.code); ok != tc.ok || string(data) != tc.want {
			t.Errorf("%d: %q %v", tc.code, data, ok)
		}
	}
	if data, ok := (&EDNS{}).Option(0); ok || data != nil {
		t.Errorf("of none: %q", data)
	}
	if _, ok := (&EDNS{Options: []byte{0, 3, 0}}).Option(3); ok {
		t.Error("three octets are an option")
	}
}

// Extended errors are read by github.com/miekg/dns as they were written (RFC 8914 §2).
func TestAppendEDE(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 1232)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	w.AddEDE(22, "no reachable authority")
	w.AddEDE(0, "")
	var got []string
	for _, o := range unpack(t, w.Finish(q, 1232)).IsEdns0().Option {
		ede := o.(*dns.EDNS0_EDE)
		got = append(got, fmt.Sprint(ede.InfoCode, ede.ExtraText))
	}
	if want := []string{"22no reachable authority", "0"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q", got)
	}
	if string(w.Options()) != string(AppendEDE(AppendEDE(nil, 22, "no reachable authority"), 0, "")) {
		t.Errorf("options %x", w.Options())
	}
}

// FuzzOptions: what is eligible with some options, github.com/miekg/dns can read, and finds the same codes.
func FuzzOptions(f *testing.F) {
	f.Add(option(OptionECS, "\x00\x01\x18\x00\xC0\x00\x02"))
	f.Add(append(option(OptionCookie, "12345678"), option(OptionKeepalive, "\x00\x01")...))
	f.Add(append(option(OptionExpire, "1234"), option(65535, "")...))
	f.Fuzz(func(t *testing.T, options []byte) {
		if len(options) > 4096 {
			return
		}
		b := withOptions(options)
		var q Query
		if !q.Parse(b) {
			return
		}
		m := new(dns.Msg)
		if err := m.Unpack(b); err != nil {
			t.Fatalf("%x is eligible, and miekg/dns says %v", options, err)
		}
		for _, o := range m.IsEdns0().Option {
			if _, ok := q.EDNS().Option(o.Option()); !ok {
				t.Fatalf("%x: option %d is missed", options, o.Option())
			}
		}
		if n, ok := walkOptions(options); !ok || n != len(m.IsEdns0().Option) {
			t.Fatalf("%x: %d options %v, miekg/dns has %d", options, n, ok, len(m.IsEdns0().Option))
		}
	})
}

// The options of an OPT record are the same whatever its owner is, which should be the root: plugins, templates and clients may have
// another one, or forget it.
func TestOptionsOfAnyOwner(t *testing.T) {
	for _, owner := range []string{".", "", "www.example.org."} {
		m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		m.Extra = []dns.RR{&dns.OPT{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeOPT, Class: 1232}, Option: []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}}}}
		var w Reply
		w.Reset(nil)
		if err := w.SetMsgOPT(m); err != nil || string(w.Options()) != "\xFD\xE9\x00\x01x" {
			t.Errorf("owner %q: reply's options %x, %v", owner, w.Options(), err)
		}
		var q Query
		if err := q.SetMsg(m, Peer{}); err != nil || string(q.EDNS().Options) != "\xFD\xE9\x00\x01x" {
			t.Errorf("owner %q: query's options %x, %v", owner, q.EDNS().Options, err)
		}
	}
}
