package reply

import (
	"bytes"
	"net"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"

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

// optionsOf are the options of a packed message, and its length.
func optionsOf(t *testing.T, b []byte) (*dns.Msg, []dns.EDNS0) {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	if opt := m.IsEdns0(); opt != nil {
		return m, opt.Option
	}
	return m, nil
}

// finishers are what listeners of the schemes have.
var finishers = map[string]*Finisher{
	"dns": {Keepalive: 100}, "tls": {Keepalive: 100, Pad: true}, "https": {Pad: true}, "quic": {Pad: true, AnySize: true}, "grpc": {Pad: true},
	"none": nil,
}

func TestExtras(t *testing.T) {
	both := wire.HasKeepalive | wire.HasPadding
	for _, tc := range []struct {
		scheme          string
		set             wire.OptionSet
		tcp             bool
		limit           int
		keepalive       bool
		length, options int // 0: as without
	}{
		{"dns", both, true, 65535, true, 0, 1},
		{"dns", both, false, 65535, false, 0, 0},
		{"dns", wire.HasPadding, true, 65535, false, 0, 0},
		{"tls", both, true, 65535, true, 468, 2},
		{"tls", wire.HasKeepalive, true, 65535, true, 0, 1},
		{"tls", wire.HasPadding, true, 65535, false, 468, 1},
		{"tls", wire.HasNSID, true, 65535, false, 0, 0},
		{"https", both, true, 65535, false, 468, 1},
		{"quic", both, false, 65535, false, 468, 1},
		{"grpc", both, true, 65535, false, 468, 1},
		{"tls", wire.HasPadding, true, 100, false, 100, 1}, // no more than there may be
		{"tls", both, true, 42, false, 0, 0},
		{"none", both, true, 65535, false, 0, 0},
	} {
		m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		m.SetEdns0(1232, true)
		b := packed(t, m)
		plain := len(b)
		out := finishers[tc.scheme].addExtras(slices.Clone(b), tc.set, tc.tcp, tc.limit)
		_, options := optionsOf(t, out)
		want := plain
		if tc.keepalive {
			want += 6
		}
		if tc.length > 0 {
			want = tc.length
		}
		if len(out) != want || len(options) != tc.options {
			t.Errorf("%+v: %d octets, options %v", tc, len(out), options)
		}
		if tc.keepalive {
			if k, ok := options[0].(*dns.EDNS0_TCP_KEEPALIVE); !ok || k.Timeout != 100 {
				t.Errorf("%+v: %v", tc, options[0])
			}
		}
	}
}

// Options that ask for something are told to have been read, unless a plugin has answered.
func TestRepeatedOptionsOfWire(t *testing.T) {
	asked := func(codes ...uint16) (b []byte) {
		for _, code := range codes {
			b = wire.AppendOption(b, code, []byte{1, 2, 3, 4})
		}
		return b
	}
	const own, foreign = 65400, 65401
	edns.SetSupportedOption(own)
	var q wire.Query
	if !q.Parse(packed(t, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))) {
		t.Fatal("the query is none")
	}
	for _, tc := range []struct {
		name        string
		asked, want []byte
		plugins     uint16 // the code of an option that a plugin adds
	}{
		{"nothing", nil, nil, 0},
		{"those that ask", asked(wire.OptionNSID, wire.OptionExpire), asked(wire.OptionNSID, wire.OptionExpire), 0},
		{"those with replies of their own", asked(wire.OptionCookie, wire.OptionPadding, wire.OptionKeepalive, wire.OptionECS), nil, 0},
		{"registered", asked(foreign, own, foreign), asked(own), 0},
		{"a plugin has answered", asked(wire.OptionNSID, own), asked(wire.OptionEDE), wire.OptionEDE},
	} {
		var w wire.Reply
		w.Reset(nil)
		w.Begin(&q)
		if tc.plugins != 0 {
			w.AddOption(tc.plugins, []byte{1, 2, 3, 4})
		}
		if repeatOptions(&w, &wire.EDNS{Options: tc.asked}); !bytes.Equal(w.Options(), tc.want) {
			t.Errorf("%s: %x, want %x", tc.name, w.Options(), tc.want)
		}
	}
}

func TestPaddingIsAMultiple(t *testing.T) {
	f := finishers["tls"]
	for n := range 1000 {
		m := new(dns.Msg).SetQuestion("example.org.", dns.TypeTXT)
		m.SetEdns0(1232, false)
		rr := &dns.TXT{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{string(make([]byte, n%256))}}
		for range 1 + n/256 {
			m.Answer = append(m.Answer, rr)
		}
		b := packed(t, m)
		out := f.addExtras(slices.Clone(b), wire.HasPadding, true, 65535)
		if len(out)%468 != 0 || len(out) < len(b)+4 || len(out) >= len(b)+4+468 {
			t.Fatalf("%d octets became %d", len(b), len(out))
		}
		if got, _ := optionsOf(t, out); len(got.Answer) != len(m.Answer) {
			t.Fatalf("%d of %d answers", len(got.Answer), len(m.Answer))
		}
	}
}

func TestNoExtrasWithoutLastOPT(t *testing.T) {
	f := finishers["tls"]
	without := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	before := without.Copy().SetEdns0(1232, false)
	before.Extra = append(before.Extra, &dns.A{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(192, 0, 2, 1)})
	for _, m := range []*dns.Msg{without, before} {
		b := packed(t, m)
		if out := f.addExtras(slices.Clone(b), wire.HasKeepalive|wire.HasPadding, true, 65535); !slices.Equal(out, b) {
			t.Errorf("%v was changed", m)
		}
	}
	for n := range 40 {
		if _, ok := LastOPT(packed(t, without.Copy().SetEdns0(1232, false))[:n]); ok {
			t.Errorf("an OPT record in %d octets", n)
		}
	}
}

// FuzzLastOPT compares with what miekg/dns reads.
func FuzzLastOPT(f *testing.F) {
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	rr, _ := dns.NewRR("www.example.org. 60 IN MX 10 mail.example.org.")
	m.Answer, m.Compress = []dns.RR{rr, rr}, true
	f.Add(packed(f, m))
	f.Add(packed(f, m.SetEdns0(1232, true)))
	f.Fuzz(func(t *testing.T, b []byte) {
		at, ok := LastOPT(b)
		if ok && (at < 12 || at+11 > len(b)) {
			t.Fatalf("OPT at %d of %d", at, len(b))
		}
		m := new(dns.Msg)
		if m.Unpack(b) != nil {
			return
		}
		again, err := m.Pack()
		if err != nil || len(again) != len(b) {
			return // not to its last octet, or compressed in another way
		}
		n := len(m.Extra)
		_, want := dns.RR(nil), false
		if n > 0 {
			_, want = m.Extra[n-1].(*dns.OPT)
		}
		if ok != want && m.IsTsig() == nil {
			t.Fatalf("%x: OPT last: %t, want %t", b, ok, want)
		}
	})
}
