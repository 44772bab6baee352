package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// largeReplies are replies of about n records whose names have much in common, more than a small table of suffixes holds.
var largeReplies = []struct {
	what string
	fill func(m *dns.Msg, n int)
}{
	{"addresses of many names", func(m *dns.Msg, n int) {
		for i := range n {
			m.Answer = append(m.Answer, addressRR(fmt.Sprintf("host-with-a-name-of-its-own-%d.example.org.", i%300), i))
		}
	}},
	{"names in many zones", func(m *dns.Msg, n int) {
		for i := range n {
			m.Answer = append(m.Answer, &dns.PTR{Hdr: header(largeName, dns.TypePTR), Ptr: fmt.Sprintf("host-%d.some-long-zone-name-%d.example.net.", i, i%150)})
		}
	}},
	{"servers", func(m *dns.Msg, n int) {
		for i := range n / 2 {
			target := fmt.Sprintf("host-%d.example.org.", i)
			m.Answer = append(m.Answer, &dns.NS{Hdr: header(largeName, dns.TypeNS), Ns: target})
			m.Extra = append(m.Extra, addressRR(target, i))
		}
	}},
	{"services", func(m *dns.Msg, n int) {
		for i := range n {
			target := fmt.Sprintf("host-with-a-name-of-its-own-%d.example.org.", i%200)
			if i < 200 {
				m.Answer = append(m.Answer, &dns.SRV{Hdr: header(largeName, dns.TypeSRV), Port: uint16(i), Target: target})
			}
			m.Extra = append(m.Extra, addressRR(target, i))
		}
	}},
	{"mail", func(m *dns.Msg, n int) {
		for i := range n / 2 {
			target := fmt.Sprintf("host-%d.example.org.", i)
			m.Answer = append(m.Answer, &dns.MX{Hdr: header(largeName, dns.TypeMX), Mx: target})
			m.Extra = append(m.Extra, addressRR(target, i))
		}
	}},
}

const largeName = "www.example.org."

func header(owner string, typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: typ, Class: dns.ClassINET, Ttl: 60}
}

func addressRR(owner string, i int) dns.RR {
	return &dns.A{Hdr: header(owner, dns.TypeA), A: []byte{10, 0, byte(i >> 8), byte(i)}}
}

func records(m *dns.Msg) []dns.RR {
	return append(append(append([]dns.RR(nil), m.Answer...), m.Ns...), m.Extra...)
}

// Of a long reply all is kept that github.com/miekg/dns keeps, which remembers all names that a pointer reaches.
func TestKeepsAsManyAsOthers(t *testing.T) {
	for _, tc := range largeReplies {
		for _, n := range []int{200, 1500, 2000, 2600, 4000, 8000} {
			m := new(dns.Msg).SetQuestion(largeName, dns.TypeTXT)
			tc.fill(m, n)
			all := records(m)
			for _, limit := range []int{512, 1232, 4096, MaxMessage} {
				var w Reply
				if err := w.SetMsg(m); err != nil {
					t.Fatal(err)
				}
				got := records(unpack(t, w.End(EndMsg(m, limit))))
				theirs := m.Copy()
				theirs.Truncate(limit)
				if len(got) < len(records(theirs)) {
					t.Errorf("%s, %d records, limit %d: kept %d, others keep %d", tc.what, n, limit, len(got), len(records(theirs)))
				}
				for i, rr := range got {
					if want := all[i]; rr.String() != want.String() && i < len(theirs.Answer) {
						t.Fatalf("%s, %d records, limit %d: record %d is %v, want %v", tc.what, n, limit, i, rr, want)
					}
				}
			}
		}
	}
}

// fitting returns a reply that is as long as 64 KiB allow if all names are as short as they can be, and its octets.
func fitting(t *testing.T, i int) (m *dns.Msg, packed []byte) {
	t.Helper()
	for n := 4000; n > 0; n -= 100 {
		m = new(dns.Msg).SetQuestion(largeName, dns.TypeTXT)
		if largeReplies[i].fill(m, n); len(m.Answer) == 0 {
			break
		}
		m.Compress = true
		if packed, err := m.Pack(); err == nil && len(packed) <= MaxMessage {
			return m, packed
		}
	}
	t.Fatal("none fits")
	return nil, nil
}

// A reply of another server that fits because its names are short stays whole: loaded, with the question in another
// case, put away and found again, copied, in another order, with records left out.
func TestLongReplyStaysWhole(t *testing.T) {
	for i, tc := range largeReplies {
		m, packed := fitting(t, i)
		q := query(t, "wWw.example.org.", dns.TypeTXT, 0)
		q.Peer.Limit = MaxMessage
		n := len(records(m))
		check := func(what string, w *Reply, n int) {
			t.Helper()
			if got := unpack(t, w.End(End{Limit: MaxMessage})); len(records(got)) != n || got.Truncated || w.Full() {
				t.Errorf("%s, %s: %d records, TC %v, want %d", tc.what, what, len(records(got)), got.Truncated, n)
			}
		}
		load := func(fold bool) *Reply {
			w := new(Reply)
			w.Reset(nil)
			if fold {
				w.FoldOwners()
			}
			if !w.LoadMessage(q, packed) {
				t.Fatalf("%s: not loaded", tc.what)
			}
			return w
		}
		check("loaded", load(false), n)
		check("loaded, owners folded", load(true), n)

		w := load(false)
		p := w.Pack()
		other := query(t, "www.EXAMPLE.org.", dns.TypeTXT, 0)
		other.Peer.Limit = MaxMessage
		w.Reset(nil)
		w.Load(&p, other)
		check("found again", w, n)

		w = load(false)
		var c Reply
		c.Reset(nil)
		c.Copy(w)
		check("copied", &c, n)

		w = load(false)
		order := make([]uint16, n)
		for i := range order {
			order[i] = uint16(i)
		}
		first := w.Count(Answer)
		order[0], order[first-1] = order[first-1], order[0]
		w.Reorder(order)
		check("in another order", w, n)

		w = load(false)
		w.Keep(func(i int) bool { return i != n-1 })
		check("with one left out", w, n-1)
	}
}

// Records of a long reply that did not fit are there again when names got shorter, and it is told that offsets are others.
func TestShortened(t *testing.T) {
	q := query(t, largeName, dns.TypeA, 0)
	q.Peer.Limit = MaxMessage
	for _, datagram := range []bool{false, true} {
		if q.Peer.Limit = MaxMessage; datagram {
			q.Peer.Limit = 0
		}
		var w Reply
		w.Reset(nil)
		w.Begin(q)
		owners := make([][]byte, 300)
		for i := range owners {
			owners[i] = MustName(fmt.Sprintf("host-with-a-name-of-its-own-%d.example.org", i))
		}
		n := 0
		for w.Addr(Answer, owners[n%len(owners)], 1, netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})) {
			n++
		}
		if datagram != (n < 2000) || w.moved() == datagram || !w.Full() || !w.Flag(FlagTC) {
			t.Errorf("datagram %v: %d records, moved %v, full %v, TC %v", datagram, n, w.moved(), w.Full(), w.Flag(FlagTC))
		}
		if w.Begin(q); w.moved() || w.Full() || w.Flag(FlagTC) {
			t.Error("a new reply is full")
		}
	}
}

// moved reports whether names were written anew, as the message would have been too long.
func (w *Reply) moved() bool { return w.names.large != nil }

// A large table whose generations begin anew holds no name of a message before.
func TestLargeTableGenerations(t *testing.T) {
	table := new(largeTable)
	c := compressor{gen: 1, large: table}
	table.gen = 1
	c.addLarge(7, 12)
	table.gen = 0xFFFF
	c.reset()
	msg := append(make([]byte, 12), MustName("example.org")...)
	for range 1000 { // a pool may lose what it is given
		if c.enlarge(); c.large.gen == 0 {
			t.Fatal("generation 0 counts")
		}
		if _, ok := c.find(msg, 7, MustName("example.org")); ok {
			t.Fatal("a name of a message before is found")
		}
	}
}

// Names that have one hash make a reply longer, not slow.
func TestLargeTableMisled(t *testing.T) {
	c := compressor{}
	c.enlarge()
	msg := append(make([]byte, 12), MustName("a.example.org")...)
	c.addLarge(7, 12)
	other := MustName("b.example.org")
	for range 10 * maxMisled {
		if _, ok := c.find(msg, 7, other); ok {
			t.Fatal("another name is found")
		}
	}
	if _, ok := c.find(msg, 7, MustName("a.example.org")); ok || c.misled != maxMisled {
		t.Errorf("misled %d times, and still looking", c.misled)
	}
}

// What is written with names as short as they can be is what was added, whatever it was.
func TestShortenedIsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var words []string
	for range 200 {
		words = append(words, string(bytes.Repeat([]byte{byte('a' + r.IntN(26))}, 1+r.IntN(30))))
	}
	name := func() string {
		text := ""
		for range 1 + r.IntN(4) {
			text += words[r.IntN(len(words))] + "."
		}
		return text
	}
	for range 20 {
		m := new(dns.Msg).SetQuestion(name(), dns.TypeANY)
		for range 1200 {
			h := header(name(), dns.TypeMX)
			switch r.IntN(4) {
			case 0:
				m.Answer = append(m.Answer, &dns.MX{Hdr: h, Preference: 7, Mx: name()})
			case 1:
				h.Rrtype = dns.TypeSRV
				m.Answer = append(m.Answer, &dns.SRV{Hdr: h, Port: 7, Target: name()})
			case 2:
				h.Rrtype = dns.TypeSOA
				m.Ns = append(m.Ns, &dns.SOA{Hdr: h, Ns: name(), Mbox: name(), Serial: 7})
			case 3:
				h.Rrtype = dns.TypeTXT
				m.Extra = append(m.Extra, &dns.TXT{Hdr: h, Txt: []string{name()}})
			}
		}
		var w Reply
		if err := w.SetMsg(m); err != nil {
			t.Fatal(err)
		}
		if !w.moved() {
			t.Error("it fits at once: nothing is tried here")
		}
		got := unpack(t, w.End(EndMsg(m, MaxMessage)))
		// Records go from the end: a short one does not take the place of a long one before it.
		want, kept := records(m), records(got)
		for i, rr := range kept {
			if rr.String() != want[i].String() {
				t.Fatalf("record %d is %v, want %v", i, rr, want[i])
			}
		}
		if len(kept) >= len(want) || !got.Truncated {
			t.Errorf("%d of %d records, TC %v", len(kept), len(want), got.Truncated)
		}
	}
}

func BenchmarkLargeMsg(b *testing.B) {
	for _, tc := range largeReplies {
		for _, limit := range []int{1232, MaxMessage} {
			b.Run(fmt.Sprint(tc.what, "/", limit), func(b *testing.B) {
				m := new(dns.Msg).SetQuestion(largeName, dns.TypeTXT)
				tc.fill(m, 16000)
				var w Reply
				for b.Loop() {
					if err := w.SetMsg(m); err != nil {
						b.Fatal(err)
					}
					w.End(EndMsg(m, limit))
				}
			})
		}
	}
}
