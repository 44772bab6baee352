package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// An address that stands several times in a slice is found once while it stands there, wherever: whether few or many of
// its addresses change, come or go.
func TestRepeatedAddresses(t *testing.T) {
	a, b, c := "192.0.2.1", "192.0.2.2", "2001:db8::1"
	versions := [][]string{{a, b, a, a}, {b, a, c, c}, {a}, {a, a}, {c, b, b}, {}, {a, b, c}, {c, b, a}}
	every := []string{a, b, c}
	for i := range 40 {
		every = append(every, fmt.Sprintf("192.0.2.%d", 100+i))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	one := func() string { return every[rnd.IntN(len(every))] }
	last := []string{}
	for range 300 {
		if rnd.IntN(20) == 0 { // anew
			last = nil
			for range rnd.IntN(60) {
				last = append(last, one())
			}
		}
		for range rnd.IntN(4) { // a few changes
			at := rnd.IntN(len(last) + 1)
			if rnd.IntN(2) == 0 {
				last = slices.Insert(last, at, one())
			} else if at < len(last) {
				last = slices.Delete(last, at, at+1)
			}
		}
		versions = append(versions, slices.Clone(last))
	}
	s := New(everything(), nil)
	s.putSlice(t, newSlice("ns1", "other", "web", endpoint(a))) // which nothing happens to
	for i, addrs := range versions {
		sl := newSlice("ns1", "web-a", "web")
		for _, one := range addrs {
			sl.Endpoints = append(sl.Endpoints, endpoint(one))
		}
		s.putSlice(t, sl)
		size := 1
		for _, one := range every {
			n, want := 0, 0
			if one == a {
				want++
			}
			all := s.SlicesByIP(addr(one))
			for found := all.Next(); found != nil; found = all.Next() {
				n++
			}
			if slices.Contains(addrs, one) {
				want++
				size++
			}
			if n != want {
				t.Errorf("version %d, %v: %s is found %d times, want %d", i, addrs, one, n, want)
			}
		}
		if s.slices.byIP.size != size {
			t.Fatalf("version %d, %v: %d in the table, want %d", i, addrs, s.slices.byIP.size, size)
		}
	}
}
