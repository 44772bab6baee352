package plugin

import "testing"

// A tally behaves as a map does, below and beyond what it holds without one.
func TestTally(t *testing.T) {
	var got tally[int]
	want := map[int]int{}
	for i := range 100 {
		k := i * 7 % 23
		if before := got.add(k, i); before != want[k] {
			t.Fatalf("step %d: key %d was %d, want %d", i, k, before, want[k])
		}
		want[k] += i
		for k := range 24 {
			if got.of(k) != want[k] {
				t.Fatalf("step %d: key %d is %d, want %d", i, k, got.of(k), want[k])
			}
		}
	}
}
