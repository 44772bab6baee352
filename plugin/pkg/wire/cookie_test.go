package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

func TestCookieSized(t *testing.T) {
	for n := range 50 {
		if got := CookieSized(n); got != (n == 8 || n >= 16 && n <= 40) {
			t.Errorf("%d octets: %v", n, got)
		}
		m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: hex.EncodeToString(make([]byte, n))}}
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q Query
		if q.Parse(b) != CookieSized(n) {
			t.Errorf("%d octets: Parse says %v", n, !CookieSized(n))
		}
	}
}

// The cookie that a query was given stands in its reply, behind the options of plugins, and is reckoned with when the
// reply is cut.
func TestCookieInReply(t *testing.T) {
	made := [CookieLen]byte{1, 2, 3}
	theirs := append(AppendOption(nil, OptionCookie, []byte("12345678")), AppendOption(nil, OptionEDE, []byte{0, 15})...)
	theirs = AppendOption(theirs, OptionCookie, []byte("12345678abcdefgh"))
	for size := 500; size < 560; size++ {
		for _, state := range []CookieState{CookieNone, CookieClient, CookieValid} {
			q := query(t, "www.example.org.", TypeA, size)
			q.SetCookie(state, made)
			var w Reply
			w.Reset(nil)
			w.Begin(q)
			for i := range 40 {
				w.Addr(Answer, q.Name(), 60, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
			}
			w.options = append(w.options, theirs...)
			told := unpack(t, w.AppendFinished(nil, q, 1232))
			w.Cut(q)
			packed := w.Finish(q, 1232)
			m := unpack(t, packed)
			var options []string
			for _, o := range m.IsEdns0().Option {
				options = append(options, fmt.Sprintf("%d %s", o.Option(), o))
			}
			want := fmt.Sprint([]string{"15 15 (Blocked): ()", "10 " + hex.EncodeToString(made[:])})
			if state == CookieNone {
				want = fmt.Sprint([]string{"10 3132333435363738", "15 15 (Blocked): ()", "10 31323334353637386162636465666768"})
			}
			if fmt.Sprint(options) != want || fmt.Sprint(told) != fmt.Sprint(m) {
				t.Fatalf("%s: options %v, told\n%v", state, options, told)
			}
			limit := max(size, MinUDP)
			if !m.Truncated || len(packed) > limit || len(packed)+16 <= limit { // one record more would have fitted
				t.Errorf("%s, limit %d: %d octets", state, limit, len(packed))
			}
		}
	}
}

// With no room for all options it is those of plugins that go.
func TestCookieIsKept(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 512)
	q.SetCookie(CookieClient, [CookieLen]byte{1})
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	w.AddOption(OptionEDE, make([]byte, 500))
	b := w.Finish(q, 1232)
	if m := unpack(t, b); len(b) > 512 || len(m.IsEdns0().Option) != 1 || m.IsEdns0().Option[0].Option() != OptionCookie {
		t.Errorf("%d octets, %v", len(b), m)
	}
}

func TestWithoutCookies(t *testing.T) {
	nsid, one := AppendOption(nil, OptionNSID, []byte("x")), AppendOption(nil, OptionCookie, []byte("12345678"))
	empty := AppendOption(nil, OptionPadding, nil)
	join := func(b ...[]byte) []byte { return bytes.Join(b, nil) }
	for i, tc := range []struct{ in, want []byte }{
		{nil, nil}, {one, nil}, {nsid, nsid}, {join(one, nsid), nsid}, {join(nsid, one, empty), join(nsid, empty)}, {join(empty, one, one), empty},
		{join(one, nsid[:3]), nil}, // octets that are no option
	} {
		if got := withoutCookies(bytes.Clone(tc.in)); !bytes.Equal(got, tc.want) {
			t.Errorf("%d: got %x, want %x", i, got, tc.want)
		}
	}
}

// The upper bits of a return code go to the OPT record, if there is one, and to nobody's next reply.
func TestExtendedRcode(t *testing.T) {
	var w Reply
	for _, size := range []int{0, 1232} {
		q := query(t, "www.example.org.", TypeA, size)
		w.Reset(nil)
		w.Begin(q)
		w.SetRcode(dns.RcodeBadCookie)
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		if m, err := w.Msg(r); err != nil || m.Rcode != dns.RcodeBadCookie || w.Rcode() != dns.RcodeBadCookie {
			t.Errorf("size %d: %v, %v", size, m, err)
		}
		m := unpack(t, w.Finish(q, 1232))
		if size > 0 && m.Rcode != dns.RcodeBadCookie || size == 0 && m.Rcode != dns.RcodeServerFailure {
			t.Errorf("size %d: rcode %d", size, m.Rcode)
		}
	}
	for name, change := range map[string]func(*Query){"Begin": w.Begin, "Fail": func(*Query) { w.Fail(ServFail, nil) }, "Reset": func(*Query) { w.Reset(nil) }, "Drop": func(*Query) { w.Drop() }} {
		w.SetRcode(dns.RcodeBadCookie)
		if change(query(t, "example.org.", TypeA, 1232)); w.Rcode() > 15 {
			t.Errorf("%s leaves %d", name, w.Rcode())
		}
	}
}
