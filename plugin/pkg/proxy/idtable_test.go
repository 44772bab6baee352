package proxy

import (
	"math/rand/v2"
	"testing"
)

func TestIDTable(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	var table idTable
	model := map[uint16]*Exchange{}
	for i := range 60000 {
		if i%3 < 2 && table.n < crowded {
			x := new(Exchange)
			table.add(x, random)
			if model[x.id] != nil {
				t.Fatalf("id %d was given twice", x.id)
			}
			model[x.id] = x
		} else {
			for id, x := range model {
				table.remove(x)
				delete(model, id)
				break
			}
		}
		if table.n != len(model) {
			t.Fatalf("n is %d, want %d", table.n, len(model))
		}
	}
	for id := range 1 << 16 {
		if got := table.find(uint16(id)); got != model[uint16(id)] {
			t.Fatalf("id %d: got %p, want %p", id, got, model[uint16(id)])
		}
	}
	for _, x := range table.all() {
		if model[x.id] != x {
			t.Fatalf("id %d is in, but should not", x.id)
		}
		delete(model, x.id)
	}
	if len(model) > 0 {
		t.Errorf("all leaves out %d", len(model))
	}
}

// A table with few exchanges, as nearly all have, needs no memory of its own.
func TestIDTableAllocates(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	var table idTable
	var x, y Exchange
	n := testing.AllocsPerRun(100, func() {
		table.add(&x, random)
		table.add(&y, random)
		table.remove(&x)
		table.remove(&y)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
