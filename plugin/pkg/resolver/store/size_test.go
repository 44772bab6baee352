package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// What the store says its entries take is what they take of the heap, within a tenth or so; and an RRset with an
// address, signed with P-256, takes 400 octets at most.
func TestSizes(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("where pointers are short, entries take less than the store says")
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s := New(1<<30, 1000)
	const n = 50000
	sig := make([]byte, 18+13+64)
	for i := range n {
		name := fmt.Sprintf("\x0dn%06d-%05d\x07example\x03org\x00", i, rand.IntN(99999))
		set := rrset.Signed(rrset.New(name, 1, 60, "aaaa"), string(sig))
		s.RRsets.Put(name, 1, &Entry{Rank: AnswerData, Set: set, TTL: 60, Expires: now.After(60), Zone: name[14:]}, now)
	}
	took := heap() - before
	_, told := s.RRsets.Total()
	t.Logf("%d octets an RRset, of which the store knows %d", took/n, told/n)
	if took/n > 400 {
		t.Errorf("%d octets an RRset", took/n)
	}
	if told < took*9/10 || told > took*12/10 {
		t.Errorf("the store says %d octets, the heap has grown by %d", told, took)
	}
	runtime.KeepAlive(s)
}
