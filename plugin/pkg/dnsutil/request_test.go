package dnsutil_test

import (
	"errors"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
)

// packed returns a question for the SOA record of example.org., changed by edit, as a packet.
func packed(t testing.TB, edit func(*dns.Msg)) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA)
	m.Id = 4711
	if edit != nil {
		edit(m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnpackRequest(t *testing.T) {
	query := packed(t, func(m *dns.Msg) { m.SetEdns0(1232, true) })
	notify := packed(t, func(m *dns.Msg) { m.SetNotify("example.org.") })
	for name, b := range map[string][]byte{
		"query":                query,
		"notify":               notify,
		"octets after the end": append(query[:len(query):len(query)], 1, 2, 3),
	} {
		m, err := dnsutil.UnpackRequest(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(m.Question) != 1 || m.Question[0].Name != "example.org." || m.Question[0].Qtype != dns.TypeSOA {
			t.Errorf("%s: got %v", name, m)
		}
	}
}

func TestUnpackRequestRejects(t *testing.T) {
	extra := func(n int) func(*dns.Msg) {
		return func(m *dns.Msg) {
			for range n {
				m.Extra = append(m.Extra, withTTL(1))
			}
		}
	}
	query := packed(t, nil)
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":       {nil, dns.ErrBuf.Error()},
		"short":         {query[:11], dns.ErrBuf.Error()},
		"header only":   {query[:12], dns.ErrBuf.Error()},
		"reply":         {packed(t, func(m *dns.Msg) { m.Response = true }), "dns request rejected"},
		"update":        {packed(t, func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), "dns request rejected"},
		"no question":   {packed(t, func(m *dns.Msg) { m.Question = nil }), "dns request rejected"},
		"two questions": {packed(t, func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), "dns request rejected"},
		"three records": {packed(t, extra(3)), "dns request rejected"},
		"two records":   {packed(t, extra(2)), ""},
	} {
		m, err := dnsutil.UnpackRequest(tc.b)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if m != nil || err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v, %v, want %q", name, m, err, tc.want)
		}
	}
	if _, err := dnsutil.UnpackRequest(query[:11]); !errors.Is(err, dns.ErrBuf) {
		t.Errorf("short: got %v, want dns.ErrBuf", err)
	}
	// A question that the header announces and that is cut off.
	if m, err := dnsutil.UnpackRequest(query[:14]); m != nil || err == nil {
		t.Errorf("cut: got %v, %v", m, err)
	}
}

func FuzzUnpackRequest(f *testing.F) {
	f.Add(packed(f, nil))
	f.Add(packed(f, func(m *dns.Msg) { m.SetEdns0(1232, true) }))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := dnsutil.UnpackRequest(b)
		if (m == nil) == (err == nil) {
			t.Fatalf("got %v and %v", m, err)
		}
		if err == nil && (m.Response || len(b) < 12) {
			t.Fatalf("accepted %x", b)
		}
	})
}

// What is rejected for its counts costs next to nothing, however long it is.
func TestUnpackRequestOfManyRecords(t *testing.T) {
	b := packed(t, nil)
	for b[10], b[11] = 0x17, 0x3F; len(b)+11 <= 65533; { // thousands of OPT records
		b = append(b, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)
	}
	if n := testing.AllocsPerRun(10, func() {
		if _, err := dnsutil.UnpackRequest(b); err == nil {
			t.Error("it was taken")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
