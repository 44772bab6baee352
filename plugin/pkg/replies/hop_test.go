package replies

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/packed"

	"github.com/miekg/dns"
)

// hops is options of which some are hop by hop.
func hops(m *dns.Msg) {
	m.SetEdns0(1232, true)
	m.IsEdns0().Option = []dns.EDNS0{
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"},
		&dns.EDNS0_EDE{InfoCode: 3, ExtraText: "stale"},
		&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE, Timeout: 7},
		&dns.EDNS0_LOCAL{Code: 65500, Data: []byte("abc")},
		&dns.EDNS0_PADDING{Padding: make([]byte, 32)},
	}
}

func onlyEndToEnd(m *dns.Msg) {
	opt := m.IsEdns0()
	opt.Option = []dns.EDNS0{opt.Option[1], opt.Option[3]}
}

func TestHopByHopOptionsAreCut(t *testing.T) {
	additional := func(m *dns.Msg) {
		rr, _ := dns.NewRR("ns.example.org. 60 IN A 192.0.2.1")
		m.Extra = append(m.Extra, rr)
	}
	for name, change := range map[string][]func(*dns.Msg){
		"none":       {packed.Reply},
		"empty":      {packed.Reply, func(m *dns.Msg) { m.SetEdns0(1232, false) }},
		"some":       {packed.Reply, hops},
		"answers":    {packed.Answer("www.example.org. 60 IN A 192.0.2.1"), hops},
		"not at end": {packed.Reply, hops, additional},
	} {
		b := packed.Message(t, "www.example.org.", dns.TypeA, change...)
		m := new(dns.Msg)
		m.Unpack(b)
		if m.IsEdns0() != nil && len(m.IsEdns0().Option) > 0 {
			onlyEndToEnd(m)
		}
		want := m.String()
		in, v := Inspect(b)
		if v != Proper {
			t.Fatal(name, v)
		}
		got := new(dns.Msg)
		if err := got.Unpack(in.WithoutHopByHop(append([]byte(nil), b...))); err != nil || got.String() != want {
			t.Errorf("%s: a reply became %v\nwant %s (%v)", name, got, want, err)
		}
		cut, cookie := CutHopByHop(b)
		if err := got.Unpack(cut); err != nil || got.String() != want {
			t.Errorf("%s: a query became %v\nwant %s (%v)", name, got, want, err)
		}
		if had := name != "none" && name != "empty"; cookie != had {
			t.Errorf("%s: had a cookie: %v", name, cookie)
		}
	}
}

// What was signed stays as it is.
func TestSignedReplyIsNotCut(t *testing.T) {
	b := packed.Message(t, "www.example.org.", dns.TypeA, packed.Reply, hops, func(m *dns.Msg) {
		m.Extra = append(m.Extra, &dns.TSIG{Hdr: dns.RR_Header{Name: "k.", Rrtype: dns.TypeTSIG, Class: dns.ClassANY}, Algorithm: dns.HmacSHA256, MAC: "00", MACSize: 1})
	})
	in, v := Inspect(b)
	if got := in.WithoutHopByHop(append([]byte(nil), b...)); v != Proper || string(got) != string(b) {
		t.Errorf("%v: %x became %x", v, b, got)
	}
}

// Whatever comes in: what is cut can be unpacked if it could before, and has none of the options.
func FuzzHopByHop(f *testing.F) {
	f.Add(packed.Message(f, "www.example.org.", dns.TypeA, hops))
	f.Add(packed.Message(f, "www.example.org.", dns.TypeA, packed.Answer("www.example.org. 60 IN A 192.0.2.1"), hops))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(dns.Msg)
		in, v := Inspect(b)
		if v != Proper || m.Unpack(b) != nil {
			return
		}
		cut := in.WithoutHopByHop(append([]byte(nil), b...))
		got := new(dns.Msg)
		if err := got.Unpack(cut); err != nil {
			t.Fatalf("%x became %x: %v", b, cut, err)
		}
		if got.IsTsig() != nil || got.IsEdns0() == nil || in.OPT == 0 {
			return
		}
		for _, o := range got.IsEdns0().Option {
			if HopByHop(o.Option()) {
				t.Errorf("%x became %x", b, cut)
			}
		}
	})
}
