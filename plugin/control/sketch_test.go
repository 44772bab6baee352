package control

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

var seed = maphash.MakeSeed()

// zipf is a trace of n keys of a million, after Zipf's law with exponent s.
func zipf(s float64, n int) []uint64 {
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), s, 1, 1<<20)
	trace := make([]uint64, n)
	for i := range trace {
		trace[i] = z.Uint64()
	}
	return trace
}

func keyOf(b []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(b[:0], n) }

// The twenty most frequent keys of a Zipf trace are counted with an error of 1 % at most, in a MiB for all that is
// counted.
func TestSketchError(t *testing.T) {
	if n := newTop().size(); n > 1<<20 {
		t.Errorf("it takes %d octets", n)
	}
	for _, exponent := range []float64{1.05, 1.1, 1.3} {
		s := newTop().names
		trace, exact := zipf(exponent, 2_000_000), map[uint64]uint64{}
		var b [8]byte
		for _, n := range trace {
			key := keyOf(b[:], n)
			s.add(maphash.Bytes(seed, key), key)
			exact[n]++
		}
		all := map[string]uint64{}
		s.addTo(all)
		got := most(all, 20)
		worst := 0.0
		for i, c := range got {
			n := binary.BigEndian.Uint64([]byte(c.key))
			off := float64(c.count)/float64(exact[n]) - 1
			worst = max(worst, off, -off)
			if off > 0.01 || off < -0.01 {
				t.Errorf("exponent %v, place %d: counted %d, came %d", exponent, i, c.count, exact[n])
			}
			if n > 30 {
				t.Errorf("exponent %v: key %d is at place %d", exponent, n, i)
			}
		}
		if s.total != uint64(len(trace)) {
			t.Errorf("%d came", s.total)
		}
		t.Logf("exponent %v: error %.3f %% at most", exponent, 100*worst)
	}
}

func TestSketchKeys(t *testing.T) {
	s := newSketch(64, 9)
	long := []byte("0123456789")
	for range 3 {
		s.add(maphash.Bytes(seed, long), long)
	}
	s.add(maphash.Bytes(seed, []byte("x")), []byte("x"))
	all := map[string]uint64{}
	s.addTo(all)
	if len(all) != 2 || all["23456789"] != 3 || all["x"] != 1 {
		t.Errorf("got %v", all)
	}
	s.sets[0].count[0], s.sets[0].mark[0] = mostCount-1, 7
	s.add(7, []byte("y"))
	if n := s.sets[0].count[0]; n != mostCount/2 {
		t.Errorf("count is %d", n)
	}
	s.reset()
	if clear := map[string]uint64{}; true {
		if s.addTo(clear); len(clear) != 0 || s.total != 0 {
			t.Errorf("left are %v", clear)
		}
	}
}

func BenchmarkSketch(b *testing.B) {
	trace := zipf(1.1, 1<<20)
	hashes := make([]uint64, len(trace))
	var k [8]byte
	for i, n := range trace {
		hashes[i] = maphash.Bytes(seed, keyOf(k[:], n))
	}
	s := newTop().names
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.add(hashes[i%len(hashes)], k[:])
	}
}
