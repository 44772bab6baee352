package cache

import (
	"bytes"
	"net/netip"
	"runtime"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// What is packed has all the room it needs, in the block of the entry unless it is large, and reads as it was written when the
// collector has run.
func TestEntryRoom(t *testing.T) {
	for n := range 600 {
		e, room := newEntry(n)
		if len(room) < n {
			t.Fatalf("%d of %d octets", len(room), n)
		}
		for i := range room {
			room[i] = byte(n)
		}
		if e.hash != 0 || e.extra != nil || e.ttl != 0 {
			t.Fatalf("%d octets are written over the entry", n)
		}
		if blocks := testing.AllocsPerRun(10, func() { kept, _ = newEntry(n) }); n <= maxRoom && blocks != 1 {
			t.Fatalf("%d octets: %v blocks", n, blocks)
		}
	}
}

var kept *entry // not on the stack

func TestPackedEntry(t *testing.T) {
	q := query(t, "www.example.org.", nil)
	c := New()
	k := c.questionOf(q)
	for _, records := range []int{1, 3, 40} {
		answer := func() *wire.Reply {
			var w wire.Reply
			w.Reset(nil)
			w.Begin(q)
			for i := range records {
				w.Addr(wire.Answer, q.Name(), 300, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
			}
			return &w
		}
		want := answer()
		e := packedEntry(want, &k)
		if got := e.size(); got < int64(records)*16 {
			t.Errorf("%d records: %d octets", records, got)
		}
		runtime.GC()
		var w wire.Reply
		w.Reset(nil)
		w.Load(&e.packed, q)
		got, err := w.Msg(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		if err != nil || len(got.Answer) != records {
			t.Fatalf("%v, %v", got, err)
		}
		if a := got.Answer[records-1].(*dns.A); a.A[len(a.A)-1] != byte(records-1) {
			t.Errorf("the last record is %s", a)
		}
		if !e.is(&k.key) || !bytes.Equal(e.packed.Key(), k.name) {
			t.Errorf("%q is not its name", e.packed.Key())
		}
	}
}
