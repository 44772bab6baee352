package wire

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// TestTighten: a reply that is too long as its source wrote it is compressed further before anything is left out.
func TestTighten(t *testing.T) {
	origin := MustName("example.org")
	for _, tc := range []struct {
		limit, additional int
		tc                bool
	}{{1232, 24, false}, {700, 3, false}} {
		q := query(t, "example.org.", TypeNS, tc.limit)
		var w Reply
		w.Reset(nil)
		w.Begin(q)
		w.SetFlag(FlagAA, true)
		pointer := w.Pointer(origin)
		var hosts [][]byte
		for i := range 12 {
			host := MustName(fmt.Sprintf("a-name-server-with-a-long-name-%02d", i+1))
			hosts = append(hosts, host[:len(host)-1])
			data := append(hosts[i][:len(hosts[i]):len(hosts[i])], 0, 0)
			w.Relative(Answer, w.QuestionOwner(), TypeNS, 300, data, []byte{0, byte(len(hosts[i]))}, pointer, len(hosts[i])+len(origin))
		}
		for i, host := range hosts {
			o := Owner{Prefix: host, Pointer: pointer, Len: len(host) + len(origin)}
			w.Relative(Additional, o, TypeA, 300, []byte{192, 0, 2, byte(i)}, nil, 0, 4)
			w.Relative(Additional, o, TypeAAAA, 300, make([]byte, 16), nil, 0, 16)
		}
		plain, length := w.PlainLen(), len(w.Bytes())
		if length < tc.limit {
			t.Fatalf("%d octets are too few", length)
		}
		m := unpack(t, w.Finish(q, 1232))
		if len(m.Answer) != 12 || len(m.Extra)-1 != tc.additional || m.Truncated != tc.tc {
			t.Errorf("limit %d: %d answers, %d additional, TC %v", tc.limit, len(m.Answer), len(m.Extra)-1, m.Truncated)
		}
		if tc.additional == 24 && w.PlainLen() != plain {
			t.Errorf("plain length %d, was %d", w.PlainLen(), plain)
		}
		for i, rr := range m.Answer {
			if want := Text(append(hosts[i], origin...)); rr.(*dns.NS).Ns != want {
				t.Errorf("answer %d: %s, want %s", i, rr, want)
			}
		}
	}
}

// TestReorderTight: after that, records in whose names others point may still change places.
func TestReorderTight(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 0)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	other := MustName("a-quite-long-name-of-a-host.example.net")
	for i := range 60 {
		w.Addr(Answer, other, 60, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	w.Cut(q)
	n := len(w.Recs())
	if n < 20 || n == 60 {
		t.Fatalf("%d records", n)
	}
	var order []uint16
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		order = append(order, uint16(i))
	}
	w.Reorder(order)
	m := unpack(t, w.End(End{Limit: 512}))
	if len(m.Answer) != n {
		t.Fatalf("%d records, want %d", len(m.Answer), n)
	}
	for i, rr := range m.Answer {
		if a := rr.(*dns.A); a.Hdr.Name != Text(other) || a.A[3] != byte(order[i]) {
			t.Errorf("record %d: %s", i, rr)
		}
	}
}
