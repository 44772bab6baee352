package throttle

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"testing"
)

// sent is how many of n that come every step milliseconds an account lets pass.
func sent(t *table, a account, from uint32, n, step int) (passed int) {
	for i := range n {
		if !t.take(1, a, from+uint32(i*step)) {
			passed++
		}
	}
	return passed
}

func TestAccount(t *testing.T) {
	for _, tc := range []struct {
		a       account
		n, step int
		want    int
	}{
		{account{20, 20, 15}, 20, 0, 20},       // at once
		{account{20, 20, 15}, 1000, 0, 20},     // at once, and too much
		{account{20, 20, 15}, 1000, 50, 1000},  // as fast as may be
		{account{20, 20, 15}, 1000, 100, 1000}, // slower
		{account{20, 20, 15}, 1000, 10, 24},    // five times too fast: when the burst is used up, debts grow
		{account{10, 50, 1}, 100, 0, 50},
		{account{100000, 100000, 3600}, 300000, 0, 100000},
	} {
		if got := sent(newTable(256*ways), tc.a, 1<<31-5, tc.n, tc.step); got != tc.want {
			t.Errorf("%+v, %d each %d ms: %d passed, want %d", tc.a, tc.n, tc.step, got, tc.want)
		}
	}
}

func TestDebtsArePaid(t *testing.T) {
	a := account{10, 10, 5}
	for after, want := range map[uint32]bool{4000: true, 5200: false, 1 << 30: false, 1<<32 - skew - 1: false} {
		tb := newTable(256 * ways)
		for range 1000 {
			tb.take(7, a, 1000)
		}
		if got := tb.take(7, a, 1000+after); got != want {
			t.Errorf("after %d ms: over %v", after, got)
		}
	}
	tb := newTable(256 * ways)
	tb.take(7, a, 10_000)
	if tb.empty(7, a, 9_000) || tb.take(7, a, 9_000) { // another socket's batch
		t.Error("a clock that is behind empties an account")
	}
}

func TestEmpty(t *testing.T) {
	tb, a := newTable(256*ways), account{2, 2, 1}
	for i, want := range []bool{false, false, true, true} {
		if got := tb.empty(3, a, 0); got != want {
			t.Errorf("before take %d: empty %v", i, got)
		}
		if over := tb.take(3, a, 0); over != want {
			t.Errorf("take %d: over %v", i, over)
		}
	}
	if tb.empty(4, a, 0) {
		t.Error("an account that nobody has is empty")
	}
}

// A million forged addresses take no more than 32 MiB, and do not make the server forget whom the attack is for.
func TestForgedAddresses(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := newState(defaults())
	a := account{20, 20, 15}
	r := rand.New(rand.NewPCG(1, 2))
	victim := fingerprint{kind: byResponses}.key(s.network(netip.MustParseAddr("192.0.2.1")))
	passed := 0
	const sources = 1_000_000
	for i := range sources {
		now := uint32(i / 100) // 100,000 a second
		var b [16]byte
		for j := range b[:] {
			b[j] = byte(r.Uint32())
		}
		addr := netip.AddrFrom16(b)
		if i%2 == 0 {
			addr = netip.AddrFrom4([4]byte(b[:4]))
		}
		s.replies.take(fingerprint{kind: byResponses}.key(s.network(addr)), a, now)
		s.queries.take(clientKey(addr, true), a, now)
		if i%100 == 0 && !s.replies.take(victim, a, now) { // 1,000 a second
			passed++
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 32<<20 {
		t.Errorf("%d octets", took)
	} else {
		t.Logf("%.1f MiB", float64(took)/(1<<20))
	}
	if passed > 30 {
		t.Errorf("the victim got %d replies in 10 s", passed)
	}
	runtime.KeepAlive(s)
}

// The account that is forgotten is the one that has been silent longest.
func TestForgetting(t *testing.T) {
	tb, a := newTable(1), account{1, 1, 10}
	key := func(i int) uint64 { return uint64(i) * shards }
	for i := range ways {
		tb.take(key(i+1), a, uint32(100+i))
	}
	tb.take(key(1), a, 200) // it comes again, and is over
	tb.take(key(50), a, 300)
	if !tb.empty(key(1), a, 300) || tb.empty(key(2), a, 300) || !tb.empty(key(3), a, 300) {
		t.Error("another one was forgotten")
	}
}

func TestTableConcurrently(t *testing.T) {
	tb, a := newTable(queryAccounts), account{50, 50, 1}
	var wg sync.WaitGroup
	passed := make([]int, 8)
	for g := range passed {
		wg.Go(func() {
			for range 1000 {
				tb.empty(9, a, 5)
				if !tb.take(9, a, 5) {
					passed[g]++
				}
			}
		})
	}
	wg.Wait()
	all := 0
	for _, n := range passed {
		all += n
	}
	if all != 50 {
		t.Errorf("%d passed", all)
	}
}

func BenchmarkTake(b *testing.B) {
	tb, a := newTable(replyAccounts), account{20, 20, 15}
	keys := make([]uint64, 1<<16)
	for i := range keys {
		keys[i] = rand.Uint64()
	}
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		tb.take(keys[i%uint32(len(keys))], a, i/1000)
		i++
	}
}
