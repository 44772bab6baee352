package control

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// All that is counted takes a MiB for the whole server, with many processors as with few. From 60 processors on a loop
// notes fewer than four queries; of more than 200 each still has room for one, whatever it takes.
func TestBudget(t *testing.T) {
	if n := unsafe.Sizeof(note{}); n > noteRoom {
		t.Errorf("a note takes %d octets", n)
	}
	size := newTop().size()
	for _, processors := range []int{1, 2, 4, 16, 64, 200} {
		loops := 4 * processors
		n := noteCount(size, loops)
		if all := size + loops*n*noteRoom; all > budget {
			t.Errorf("%d processors: %d notes of each loop, %d octets", processors, n, all)
		}
		if n < 1 || processors <= 8 && n < 16 {
			t.Errorf("%d processors: %d notes of each loop", processors, n)
		}
	}
}

// played is what a trace of names makes of a server with so many loops, each of which has a share of the queries, at
// the same time.
func played(t *testing.T, loops int, trace []uint64) *tops {
	t.Helper()
	all := &tops{}
	var wg sync.WaitGroup
	for i := range loops {
		l := eventloop.New()
		t.Cleanup(l.Close)
		wg.Go(func() {
			for at := i; at < len(trace); at += loops {
				name := nameOfKey(trace[at])
				l.Enter()
				all.note(l, name, wire.Hash(name), netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1, 0)
				l.Leave()
			}
		})
	}
	wg.Wait()
	return all
}

// nameOfKey is a name of 4 labels, in wire form.
func nameOfKey(n uint64) []byte {
	b := []byte{8}
	return append(binary.BigEndian.AppendUint64(b, n), "\x03www\x07example\x03org\x00"...)
}

// worst compares the most frequent keys with what came: of the first n of want the error of the count, and how many of
// them are missing among the most frequent that were counted.
func worst(t *testing.T, all *tops, want map[uint64]uint64, n, among int) (off float64, missing int) {
	t.Helper()
	counts, _, _ := all.collect("names")
	seen := map[string]uint64{}
	for _, c := range most(counts, among) {
		seen[c.key] = c.count
	}
	exact := map[string]uint64{}
	for k, c := range want {
		exact[string(nameOfKey(k))] = c
	}
	for _, c := range most(exact, n) {
		got, ok := seen[c.key]
		if !ok {
			missing++
			continue
		}
		e := float64(got)/float64(c.count) - 1
		off = max(off, e, -e)
	}
	return off, missing
}

// The twenty most frequent names of a Zipf trace are counted with an error of 1 % at most, whichever loops they come
// to.
func TestTopsError(t *testing.T) {
	trace, exact := zipf(1.1, 1_000_000), map[uint64]uint64{}
	for _, n := range trace {
		exact[n]++
	}
	for _, loops := range []int{1, 8} {
		all := played(t, loops, trace)
		off, missing := worst(t, all, exact, 20, 20)
		t.Logf("%d loops: error %.3f %%, %d missing", loops, 100*off, missing)
		if off > 0.01 || missing > 1 { // the last two may have changed places
			t.Errorf("%d loops: error %.3f %%, %d missing", loops, 100*off, missing)
		}
		if _, total, _ := all.collect("names"); total != uint64(len(trace)) {
			t.Errorf("%d loops: %d of %d queries are counted", loops, total, len(trace))
		}
		if counts, total, _ := all.collect("clients"); len(counts) != loops || total != uint64(len(trace)) {
			t.Errorf("%d loops: clients are %v of %d", loops, counts, total)
		}
	}
}

// What is popular changes half-way: names that nobody asked for before are the popular ones then. They are seen, beside
// the old ones, in spite of the full tables. What they are counted with depends on which names share places, by a seed that
// differs from run to run: the worst error of twenty is 0.8 % by median, and was 2.5 % in the worst of 180 runs.
func TestTopsShift(t *testing.T) {
	trace, exact, late := zipf(1.1, 1_000_000), map[uint64]uint64{}, map[uint64]uint64{}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(trace), func(i, j int) { trace[i], trace[j] = trace[j], trace[i] })
	for i := range trace {
		if i >= len(trace)/2 {
			trace[i] += 1 << 40
			late[trace[i]]++
		}
		exact[trace[i]]++
	}
	// One loop, so that the halves stay apart.
	all := played(t, 1, trace)
	off, missing := worst(t, all, late, 20, 45)
	t.Logf("new names: error %.3f %%, %d missing", 100*off, missing)
	if off > 0.05 || missing > 0 {
		t.Errorf("new names: error %.3f %%, %d missing", 100*off, missing)
	}
	if off, missing = worst(t, all, exact, 40, 45); off > 0.05 || missing > 0 {
		t.Errorf("old and new names: error %.3f %%, %d missing", 100*off, missing)
	}
}
