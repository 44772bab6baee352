package response_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

var now = time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)

func rr(t testing.TB, s string) dns.RR {
	t.Helper()
	rr, err := dns.NewRR(s)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}

// message returns a reply to an A query with an answer, an authority and an additional record, "" for none.
func message(t testing.TB, rcode int, answer, authority, additional string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	m.Response, m.Rcode = true, rcode
	for text, section := range map[string]*[]dns.RR{answer: &m.Answer, authority: &m.Ns, additional: &m.Extra} {
		if text != "" {
			*section = append(*section, rr(t, text))
		}
	}
	return m
}

const (
	a   = "www.example.org. 300 IN A 192.0.2.1"
	soa = "example.org. 300 IN SOA ns.example.org. hostmaster.example.org. 1 7200 3600 1209600 300"
	ns  = "sub.example.org. 300 IN NS ns.example.net."

	valid   = "www.example.org. 300 IN RRSIG A 8 3 300 20260201000000 20260101000000 1 example.org. AAAA"
	expired = "www.example.org. 300 IN RRSIG A 8 3 300 20260114000000 20260101000000 1 example.org. AAAA"
	early   = "www.example.org. 300 IN RRSIG A 8 3 300 20260301000000 20260201000000 1 example.org. AAAA"
)

func TestTypify(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    *dns.Msg
		want response.Type
	}{
		{"answer", message(t, dns.RcodeSuccess, a, "", ""), response.NoError},
		{"answer with authority SOA", message(t, dns.RcodeSuccess, a, soa, ""), response.NoError},
		{"answer with authority NS", message(t, dns.RcodeSuccess, a, ns, ""), response.NoError},
		{"NXDOMAIN with answer", message(t, dns.RcodeNameError, a, soa, ""), response.OtherError},
		{"NODATA", message(t, dns.RcodeSuccess, "", soa, ""), response.NoData},
		{"NXDOMAIN", message(t, dns.RcodeNameError, "", soa, ""), response.NameError},
		{"NXDOMAIN without SOA", message(t, dns.RcodeNameError, "", "", ""), response.NameError},
		{"NXDOMAIN with NS", message(t, dns.RcodeNameError, "", ns, ""), response.NameError},
		{"SERVFAIL", message(t, dns.RcodeServerFailure, "", "", ""), response.ServerError},
		{"SERVFAIL with SOA", message(t, dns.RcodeServerFailure, "", soa, ""), response.ServerError},
		{"SERVFAIL with answer", message(t, dns.RcodeServerFailure, a, "", ""), response.ServerError},
		{"NOTIMP", message(t, dns.RcodeNotImplemented, "", "", ""), response.ServerError},
		{"referral", message(t, dns.RcodeSuccess, "", ns, "ns.example.net. 300 IN A 192.0.2.2"), response.Delegation},
		{"empty NOERROR", message(t, dns.RcodeSuccess, "", "", ""), response.NoError},
		{"REFUSED", message(t, dns.RcodeRefused, "", "", ""), response.OtherError},
		{"REFUSED with NS", message(t, dns.RcodeRefused, "", ns, ""), response.OtherError},
		{"FORMERR", message(t, dns.RcodeFormatError, "", "", ""), response.OtherError},
		{"nil", nil, response.OtherError},
		{"without question", new(dns.Msg), response.NoError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, opt := response.Typify(tc.m, now); got != tc.want || opt != nil {
				t.Errorf("got %v, %v, want %v, no OPT", got, opt, tc.want)
			}
		})
	}
}

func TestTypifyMeta(t *testing.T) {
	update := new(dns.Msg).SetUpdate("example.org.")
	notify := new(dns.Msg).SetNotify("example.org.")
	notify.Answer = []dns.RR{rr(t, soa)}
	axfr := new(dns.Msg).SetAxfr("example.org.")
	axfr.Answer = []dns.RR{rr(t, soa)}
	ixfr := new(dns.Msg).SetIxfr("example.org.", 1, "ns.example.org.", "hostmaster.example.org.")

	for name, tc := range map[string]struct {
		m    *dns.Msg
		want response.Type
	}{
		"update": {update, response.Update},
		"notify": {notify, response.Meta},
		"axfr":   {axfr, response.Meta},
		"ixfr":   {ixfr, response.Meta},
	} {
		if got, opt := response.Typify(tc.m, now); got != tc.want || opt != nil {
			t.Errorf("%s: got %v, %v, want %v, no OPT", name, got, opt, tc.want)
		}
		tc.m.SetEdns0(1232, true)
		if got, opt := response.Typify(tc.m, now); got != tc.want || opt == nil {
			t.Errorf("%s with OPT: got %v, %v, want %v with the OPT", name, got, opt, tc.want)
		}
	}
}

func TestTypifySignatures(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    *dns.Msg
		do   response.Type
	}{
		{"valid", message(t, dns.RcodeSuccess, valid, "", ""), response.NoError},
		{"expired answer", message(t, dns.RcodeSuccess, expired, "", ""), response.OtherError},
		{"answer of tomorrow", message(t, dns.RcodeSuccess, early, "", ""), response.OtherError},
		{"expired authority", message(t, dns.RcodeNameError, "", expired, ""), response.OtherError},
		{"expired additional", message(t, dns.RcodeSuccess, a, soa, expired), response.OtherError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, do := range []bool{false, true} {
				m := tc.m.Copy()
				m.SetEdns0(1232, do)
				plain, _ := response.Typify(tc.m, now)
				want := tc.do
				if !do {
					want = plain // signatures matter only to who asked for them
				}
				got, opt := response.Typify(m, now)
				if got != want || opt == nil || opt.Do() != do {
					t.Errorf("DO %t: got %v, %v, want %v", do, got, opt, want)
				}
				if plain == response.OtherError {
					t.Errorf("without OPT: got %v", plain)
				}
			}
		})
	}
}

func TestTypeStrings(t *testing.T) {
	names := []string{"NOERROR", "NXDOMAIN", "SERVERERROR", "NODATA", "DELEGATION", "META", "UPDATE", "OTHERERROR"}
	for i, name := range names {
		if got := response.Type(i).String(); got != name {
			t.Errorf("%d: got %q, want %q", i, got, name)
		}
		if got, err := response.TypeFromString(name); got != response.Type(i) || err != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if got, err := response.TypeFromString("nodata"); got != response.NoError || err == nil || err.Error() != "invalid Type: nodata" {
		t.Errorf("got %v, %v", got, err)
	}
	if got := response.Type(-1).String() + response.Type(8).String(); got != "Type(-1)Type(8)" {
		t.Errorf("got %q", got)
	}
}

func TestClassStrings(t *testing.T) {
	for i, name := range []string{"all", "success", "denial", "error"} {
		if got := response.Class(i).String(); got != name {
			t.Errorf("%d: got %q, want %q", i, got, name)
		}
		if got, err := response.ClassFromString(name); got != response.Class(i) || err != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if got, err := response.ClassFromString("foo"); got != response.All || err == nil || err.Error() != "invalid Class: foo" {
		t.Errorf("got %v, %v", got, err)
	}
	if got := response.Class(-1).String() + response.Class(4).String(); got != "Class(-1)Class(4)" {
		t.Errorf("got %q", got)
	}
}

func TestClassify(t *testing.T) {
	want := map[response.Type]response.Class{
		response.NoError:     response.Success,
		response.NameError:   response.Denial,
		response.ServerError: response.Error,
		response.NoData:      response.Denial,
		response.Delegation:  response.Success,
		response.Meta:        response.Error,
		response.Update:      response.Error,
		response.OtherError:  response.Error,
	}
	for typ, class := range want {
		if got := response.Classify(typ); got != class {
			t.Errorf("%v: got %v, want %v", typ, got, class)
		}
	}
}

func TestTypifyDoesNotAllocate(t *testing.T) {
	m := message(t, dns.RcodeSuccess, valid, soa, "")
	m.SetEdns0(1232, true)
	if n := testing.AllocsPerRun(100, func() { response.Typify(m, now) }); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkTypify(b *testing.B) {
	m := message(b, dns.RcodeSuccess, a, soa, "")
	m.Answer = append(m.Answer, rr(b, valid))
	m.SetEdns0(1232, true)
	b.ReportAllocs()
	for b.Loop() {
		response.Typify(m, now)
	}
}

// Both lanes find the same type.
func TestTypifyWire(t *testing.T) {
	now := time.Now()
	const sig = "example.org. 5 IN RRSIG A 8 2 5 20200101000000 20190101000000 1 example.org. AAAA"
	for _, answer := range [][]string{nil, {"example.org. 5 IN A 192.0.2.1"}, {sig}} {
		for _, authority := range [][]string{nil, {"example.org. 5 IN SOA ns.example.org. root.example.org. 1 2 3 4 5"}, {"example.org. 5 IN NS ns.example.org."}, {sig}} {
			for _, rcode := range []int{0, 1, 2, 3, 4, 5} {
				for _, do := range []bool{false, true} {
					m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
					packet, _ := m.Pack()
					q, w := new(wire.Query), new(wire.Reply)
					if !q.Parse(packet) {
						t.Fatal("not eligible")
					}
					m.Rcode = rcode
					if do {
						m.SetEdns0(1232, true)
					}
					for i, text := range append(slices.Clone(answer), authority...) {
						rr, err := dns.NewRR(text)
						if err != nil {
							t.Fatal(err)
						}
						if i < len(answer) {
							m.Answer = append(m.Answer, rr)
						} else {
							m.Ns = append(m.Ns, rr)
						}
					}
					w.Reset(make([]byte, 0, 512))
					if err := w.SetMsg(m); err != nil {
						t.Fatal(err)
					}
					want, _ := response.Typify(m, now)
					if got := response.TypifyWire(w, q, do, now); got != want {
						t.Errorf("%v: got %v, want %v", m, got, want)
					}
				}
			}
		}
	}
}
