package dnsutil_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/response"
)

// withTTL returns a record with this TTL.
func withTTL(ttl uint32) dns.RR {
	return &dns.TXT{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: ttl}}
}

// opt returns an OPT record whose TTL field is not zero, since DO is set.
func opt() dns.RR {
	o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	o.SetDo()
	return o
}

func TestMinimalTTL(t *testing.T) {
	type section = []dns.RR
	for _, tc := range []struct {
		name                          string
		typ                           response.Type
		answer, authority, additional section
		want                          time.Duration
	}{
		{"answer", response.NoError, section{withTTL(300), withTTL(60)}, nil, nil, time.Minute},
		{"authority", response.NoData, nil, section{withTTL(61)}, section{opt()}, 61 * time.Second},
		{"additional", response.NoError, section{withTTL(300)}, section{withTTL(200)}, section{opt(), withTTL(7)}, 7 * time.Second},
		{"name error", response.NameError, nil, section{withTTL(62)}, nil, 62 * time.Second},
		{"zero", response.NoError, section{withTTL(0)}, nil, nil, 0},
		{"at most an hour", response.NoError, section{withTTL(86400)}, nil, nil, time.Hour},
		{"only additional", response.NoError, nil, nil, section{withTTL(8)}, 8 * time.Second},
		{"empty", response.NoError, nil, nil, nil, 5 * time.Second},
		{"only OPT", response.NoError, nil, nil, section{opt()}, 5 * time.Second},
		{"referral", response.Delegation, nil, section{withTTL(300)}, nil, 5 * time.Second},
		{"server error", response.ServerError, nil, section{withTTL(300)}, nil, 5 * time.Second},
		{"other error", response.OtherError, section{withTTL(300)}, nil, nil, 5 * time.Second},
		{"meta", response.Meta, section{withTTL(300)}, nil, nil, 5 * time.Second},
		{"update", response.Update, section{withTTL(300)}, nil, nil, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &dns.Msg{Answer: tc.answer, Ns: tc.authority, Extra: tc.additional}
			if got := dnsutil.MinimalTTL(m, tc.typ); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMinimalTTLWithMaximum(t *testing.T) {
	m := &dns.Msg{Answer: []dns.RR{withTTL(86400)}}
	for _, tc := range []struct {
		typ           response.Type
		maximum, want time.Duration
	}{
		{response.NoError, 48 * time.Hour, 24 * time.Hour},
		{response.NoError, time.Second, time.Second},
		{response.ServerError, time.Second, dnsutil.MinimalDefaultTTL},
	} {
		if got := dnsutil.MinimalTTLWithMaximum(m, tc.typ, tc.maximum); got != tc.want {
			t.Errorf("%v, at most %v: got %v, want %v", tc.typ, tc.maximum, got, tc.want)
		}
	}
	if dnsutil.MaximumDefaulTTL != dnsutil.MaximumDefaultTTL {
		t.Error("the old spelling means another value")
	}
}

func TestMinimalTTLDoesNotAllocate(t *testing.T) {
	m := &dns.Msg{Answer: []dns.RR{withTTL(300)}, Ns: []dns.RR{withTTL(60)}, Extra: []dns.RR{opt()}}
	if n := testing.AllocsPerRun(100, func() { dnsutil.MinimalTTL(m, response.NoError) }); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkMinimalTTL(b *testing.B) {
	m := &dns.Msg{
		Answer: []dns.RR{withTTL(300), withTTL(300)},
		Ns:     []dns.RR{withTTL(300), withTTL(300)},
		Extra:  []dns.RR{withTTL(300), withTTL(300), opt()},
	}
	b.ReportAllocs()
	for b.Loop() {
		dnsutil.MinimalTTL(m, response.NoError)
	}
}
