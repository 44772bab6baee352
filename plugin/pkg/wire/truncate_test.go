package wire

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// cutCase is a reply that is cut at each length that it may have.
type cutCase struct {
	what  string
	aa    bool
	build func(w *Reply)
	// needed is how many records TC tells of: the answers, authority and glue in the domain of the delegation.
	needed int
}

func cutCases() []cutCase {
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	in, out := MustName("ns.sub.example.org"), MustName("ns.example.net")
	return []cutCase{
		{"answers", true, func(w *Reply) {
			for i := range 12 {
				w.Addr(Answer, w.qname(), 1, addr(i))
			}
		}, 12},
		{"a denial", true, func(w *Reply) {
			w.Target(Answer, w.qname(), TypeCNAME, 1, MustName("no.example.org"))
			w.SOA(Authority, MustName("example.org"), 1, &SOA{MName: in, RName: out})
		}, 2},
		{"additional records", true, func(w *Reply) {
			w.Target(Answer, w.qname(), TypeNS, 1, in)
			for i := range 8 {
				w.Addr(Additional, in, 1, addr(i))
			}
		}, 1},
		{"a referral with glue, some in the domain", false, func(w *Reply) {
			w.Target(Authority, MustName("Sub.example.org"), TypeNS, 1, in)
			w.Target(Authority, MustName("Sub.example.org"), TypeNS, 1, out)
			w.Addr(Additional, MustName("NS.SUB.example.org"), 1, addr(1))
			w.Addr(Additional, out, 1, addr(2))
			w.Addr(Additional, out, 1, addr(3))
		}, 3},
		{"glue of another domain", false, func(w *Reply) {
			w.Target(Authority, MustName("sub.example.org"), TypeNS, 1, out)
			w.TXT(Additional, in, ClassIN, 1, "no address")
			w.Addr(Additional, out, 1, addr(2))
		}, 1},
		{"an answer from elsewhere with authority", false, func(w *Reply) {
			w.Addr(Answer, w.qname(), 1, addr(1))
			w.Target(Authority, MustName("sub.example.org"), TypeNS, 1, in)
			w.Addr(Additional, in, 1, addr(2))
		}, 2},
	}
}

// A reply is never longer than its limit. Records go from the end; TC is set if one is left out that the client needs
// (RFC 2181 §9, RFC 9471 §2); no part of an RRset stays in the additional section; and nothing goes that would fit.
func TestCutAtEachLength(t *testing.T) {
	for _, tc := range cutCases() {
		q := query(t, "www.sub.example.org.", TypeA, 0)
		whole := func() *Reply {
			w := new(Reply)
			w.Reset(nil)
			w.Begin(q)
			w.SetFlag(FlagAA, tc.aa)
			tc.build(w)
			return w
		}
		full := unpack(t, whole().End(End{Limit: MaxMessage}))
		all := slices.Concat(full.Answer, full.Ns, full.Extra)
		length := len(whole().End(End{Limit: MaxMessage}))
		for limit := HeaderLen + 25; limit <= length+1; limit++ {
			b := whole().End(End{ID: 7, Limit: limit})
			if len(b) > limit {
				t.Fatalf("%s, limit %d: %d octets", tc.what, limit, len(b))
			}
			m := unpack(t, b)
			kept := slices.Concat(m.Answer, m.Ns, m.Extra)
			if lines(kept) != lines(all[:len(kept)]) {
				t.Fatalf("%s, limit %d:\n%swant the first ones of\n%s", tc.what, limit, lines(kept), lines(all))
			}
			n := 0
			for n < len(all) && fits(whole, n+1, limit) {
				n++
			}
			if want := n < tc.needed; m.Truncated != want {
				t.Fatalf("%s, limit %d: %d of %d records, TC %v", tc.what, limit, len(kept), len(all), m.Truncated)
			}
			for n < len(all) && n > len(full.Answer)+len(full.Ns) && oneRRset(all[n-1], all[n]) {
				n--
			}
			if len(kept) != n {
				t.Fatalf("%s, limit %d: %d of %d records, want %d", tc.what, limit, len(kept), len(all), n)
			}
		}
	}
}

// fits reports whether the first n records of a reply fit into limit octets.
func fits(whole func() *Reply, n, limit int) bool {
	w := whole()
	w.Truncate(n)
	w.tighten(MaxMessage)
	return len(w.buf) <= limit
}

func oneRRset(a, b dns.RR) bool {
	return strings.EqualFold(a.Header().Name, b.Header().Name) && a.Header().Rrtype == b.Header().Rrtype
}

// A message has 65535 octets at most: a record that does not fit any more is not added, the ones before stay whole, and
// the reply gets TC (RFC 2181 §9).
func TestLongestMessage(t *testing.T) {
	q := query(t, "www.example.org.", TypeTXT, 1232)
	adds := map[string]func(w *Reply) bool{
		"TXT":    func(w *Reply) bool { return w.TXT(Answer, w.qname(), ClassIN, 1, strings.Repeat("x", 1000)) },
		"AAAA":   func(w *Reply) bool { return w.Addr(Answer, w.qname(), 1, netip.MustParseAddr("2001:db8::1")) },
		"CNAME":  func(w *Reply) bool { return w.Target(Answer, w.qname(), TypeCNAME, 1, nameOf(255)) },
		"SRV":    func(w *Reply) bool { return w.SRV(Answer, w.qname(), 1, 1, 2, 3, nameOf(255)) },
		"Record": func(w *Reply) bool { return w.Record(Answer, w.qname(), 65280, ClassIN, 1, make([]byte, 30000)) },
		"Relative": func(w *Reply) bool {
			return w.Relative(Answer, w.QuestionOwner(), 65280, 1, make([]byte, 777), nil, 0, 777)
		},
		"TargetOf": func(w *Reply) bool { return w.TargetOf(Answer, w.QuestionOwner(), TypeCNAME, 1, nameOf(99)) },
	}
	for what, add := range adds {
		var w Reply
		w.Reset(nil)
		w.Begin(q)
		n := 0
		for add(&w) {
			if n++; n > 60000 {
				t.Fatalf("%s: no end", what)
			}
		}
		plain := w.PlainLen()
		if add(&w) || len(w.Recs()) != n || w.Count(Answer) != n || len(w.Bytes()) > MaxMessage || w.PlainLen() != plain {
			t.Fatalf("%s: %d of %d records, %d octets", what, len(w.Recs()), n, len(w.Bytes()))
		}
		b := w.End(End{Limit: MaxMessage})
		if m := unpack(t, b); !m.Truncated || len(m.Answer) != n {
			t.Errorf("%s: %d of %d records, TC %v", what, len(m.Answer), n, m.Truncated)
		}
	}
}

// The longest reply of a transport: what it carries, else the client's size, 512 octets at least (RFC 6891 §6.2.3).
func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		edns   int
		peer   Peer
		limit  int
		stream bool
	}{
		{0, Peer{}, 512, false}, {1232, Peer{}, 1232, false}, {100, Peer{}, 512, false}, {513, Peer{}, 513, false}, {65507, Peer{}, 65507, false}, {65508, Peer{}, 65507, false},
		{65535, Peer{}, 65507, false},
		{1232, Peer{Proto: TCP, Limit: MaxMessage}, MaxMessage, true}, {0, Peer{Limit: MaxMessage}, MaxMessage, true}, {1232, Peer{Limit: 800}, 800, false},
	} {
		q := query(t, "www.example.org.", TypeA, tc.edns)
		q.Peer = tc.peer
		if q.Limit() != tc.limit || q.Stream() != tc.stream {
			t.Errorf("size %d, %+v: limit %d, stream %v", tc.edns, tc.peer, q.Limit(), q.Stream())
		}
	}
}

// A pointer can lead to the first 16384 octets only (RFC 1035 §4.1.4): names behind them are written, and read, all the
// same.
func TestNamesBehindPointers(t *testing.T) {
	q := query(t, "www.example.org.", TypeNS, 1232)
	for _, tight := range []bool{false, true} {
		var w Reply
		w.Reset(nil)
		w.Begin(q)
		w.tight = tight
		for len(w.Bytes()) < maxPointer-20 {
			w.Record(Answer, w.qname(), 65280, ClassIN, 1, make([]byte, 16))
		}
		var want []string
		for i := range 40 {
			target := fmt.Sprintf("host%d.far.example.net.", i/2)
			want = append(want, target)
			w.Target(Answer, MustName(target), TypeNS, 1, MustName(target))
		}
		m := unpack(t, w.End(End{Limit: MaxMessage}))
		for i, rr := range m.Answer[len(m.Answer)-40:] {
			if rr.Header().Name != want[i] || rr.(*dns.NS).Ns != want[i] {
				t.Fatalf("record %d: %v, want %s", i, rr, want[i])
			}
		}
	}
}

// The compressor forgets names when it is full, and when it has counted 65536 messages: all are read as they were.
func TestCompressorForgets(t *testing.T) {
	q := query(t, "www.example.org.", TypeNS, 1232)
	var w Reply
	for _, gen := range []uint16{0, 65534, 65535, 0} {
		w.Reset(nil)
		w.names.gen = gen
		w.Begin(q)
		for i := range 300 {
			w.Target(Answer, MustName(fmt.Sprintf("h%d.z%d.example.com", i, i%40)), TypeNS, 1, MustName(fmt.Sprintf("h%d.z%d.example.com", (i+150)%300, i%40)))
		}
		for i, rr := range unpack(t, w.End(End{Limit: MaxMessage})).Answer {
			if got, want := rr.Header().Name+rr.(*dns.NS).Ns, fmt.Sprintf("h%d.z%d.example.com.h%d.z%d.example.com.", i, i%40, (i+150)%300, i%40); got != want {
				t.Fatalf("counter %d, record %d: %s, want %s", gen, i, got, want)
			}
		}
	}
}
