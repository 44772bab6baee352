package main

import (
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestUpstreamAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		qtype  uint16
		edns   bool
		rcode  int
		answer string
		soa    string
	}{
		{name: "www.example.net.", qtype: dns.TypeA, answer: "www.example.net.\t3600\tIN\tA\t192.0.2.9"},
		{name: "www.example.net.", qtype: dns.TypeAAAA, edns: true, answer: "www.example.net.\t3600\tIN\tAAAA\t2001:db8::9"},
		{name: "www.example.net.", qtype: dns.TypeMX, edns: true},
		{name: ".", qtype: dns.TypeNS},
		{name: "www.compute.internal.", qtype: dns.TypeA, edns: true, rcode: dns.RcodeNameError,
			soa: "compute.internal.\t300\tIN\tSOA\t. . 1 7200 3600 1209600 300"},
	} {
		q := new(dns.Msg).SetQuestion(c.name, c.qtype)
		if c.edns {
			q.SetEdns0(4096, false)
		}
		query, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		m := new(dns.Msg)
		if err := m.Unpack(appendAnswer(nil, query)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var first, soa string
		if len(m.Answer) > 0 {
			first = m.Answer[0].String()
		}
		if len(m.Ns) > 0 {
			soa = m.Ns[0].String()
		}
		if !m.Response || m.Id != q.Id || m.Question[0] != q.Question[0] || m.Rcode != c.rcode ||
			first != c.answer || soa != c.soa || (m.IsEdns0() != nil) != c.edns {
			t.Errorf("%s %s: %v", c.name, dns.TypeToString[c.qtype], m)
		}
	}
}

func TestReadReply(t *testing.T) {
	for _, c := range []struct {
		msg  []byte
		want outcome
		ok   bool
	}{
		{msg: []byte{1, 2, 0x81, 0}},
		{msg: []byte{1, 2, 0x01, 0, 0, 1, 0, 1, 0, 0, 0, 0}},
		{[]byte{1, 2, 0x81, 0, 0, 1, 0, 1, 0, 0, 0, 0}, answer, true},
		{[]byte{1, 2, 0x81, 0, 0, 1, 0, 0, 0, 0, 0, 0}, noData, true},
		{[]byte{1, 2, 0x81, 3, 0, 1, 0, 0, 0, 0, 0, 0}, nxDomain, true},
		{[]byte{1, 2, 0x81, 2, 0, 1, 0, 0, 0, 0, 0, 0}, failure, true},
		{[]byte{1, 2, 0x83, 0, 0, 1, 0, 1, 0, 0, 0, 0}, failure, true}, // TC
	} {
		r, ok := readReply(c.msg)
		if ok != c.ok || ok && (r.outcome != c.want || r.id != 0x102) {
			t.Errorf("%x: %+v, %v", c.msg, r, ok)
		}
	}
}

// FuzzAnswer: whatever arrives is read in its bounds, and what is a query gets an answer
// that others can read.
func FuzzAnswer(f *testing.F) {
	f.Add(appendQuery(nil, "www.example.net", typeA))
	f.Add(appendQuery(nil, "www."+searchOrigin, typeAAAA))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x3fa"))
	f.Fuzz(func(t *testing.T, query []byte) {
		msg := appendAnswer(nil, query)
		if len(msg) == 0 {
			return
		}
		if r, ok := readReply(msg); !ok || len(query) < headerLen || r.id != uint16(query[0])<<8|uint16(query[1]) {
			t.Fatalf("%x: %x", query, msg)
		}
		if new(dns.Msg).Unpack(query) == nil {
			if err := new(dns.Msg).Unpack(msg); err != nil {
				t.Fatalf("%x: %x: %v", query, msg, err)
			}
		}
	})
}

func TestQuantiles(t *testing.T) {
	v := make([]time.Duration, 100)
	for i := range v {
		v[99-i] = time.Duration(i)
	}
	if a, b := quantile(v, 0.5), quantile(v, 0.99); a != 50 || b != 99 {
		t.Errorf("%d and %d", a, b)
	}
	if quantile(nil, 0.5) != 0 || median(nil) != 0 || median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 2, 3}) != 2.5 {
		t.Error("wrong middle")
	}
}
