package zone

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// has reports whether an index has a name of that hash at a place.
func (p *pages) has(hash uint64, place uint32) bool {
	pg := p.of(uint32(hash >> 32))
	for i := home(uint32(hash >> 32)); pg.slots[i] != 0; i = behind(i) {
		if pg.slots[i] == hash>>32<<32|uint64(place) {
			return true
		}
	}
	return false
}

// TestPages: versions of an index that grows from nothing, and shrinks, have what they had when they were made,
// whatever later ones do to pages and floors that they share.
func TestPages(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	hashes := make([]uint64, 120_000)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	type version struct {
		pages
		there map[int]uint32
	}
	now := version{newPages(0, 0), map[int]uint32{}}
	var old []version
	by := uint64(0)
	change := func(n int, f func(i int)) {
		by++
		now.top = slices.Clone(now.top)
		for range n {
			f(r.IntN(len(hashes)))
		}
		if by%64 == 0 {
			kept := version{now.pages, map[int]uint32{}}
			for i, place := range now.there {
				kept.there[i] = place
			}
			old = append(old, kept)
		}
	}
	for range 256 {
		change(500, func(i int) {
			place := r.Uint32()>>1 + 1
			if err := now.set(hashes[i], now.there[i], place, by); err != nil {
				t.Fatal(err)
			}
			now.there[i] = place
		})
	}
	if now.bits < 11 || now.count < 1200 {
		t.Fatalf("%d names are in %d pages of %d bits: this shows little", len(now.there), now.count, now.bits)
	}
	for range 128 {
		change(900, func(i int) {
			if place := now.there[i]; place != 0 {
				now.remove(hashes[i], place, by)
				delete(now.there, i)
			}
		})
	}
	for n, v := range append(old, now) {
		for i, hash := range hashes {
			if place := v.there[i]; place != 0 && !v.has(hash, place) {
				t.Fatalf("version %d: a name is not at %d", n, place)
			}
		}
		seen, names := map[*page]bool{}, 0
		for i := range uint32(1) << v.bits {
			if pg := v.of(i); !seen[pg] {
				seen[pg] = true
				for _, slot := range pg.slots {
					if slot != 0 {
						names++
					}
				}
			}
		}
		if names != len(v.there) || len(seen) != v.count {
			t.Errorf("version %d: %d names in %d pages, want %d in %d", n, names, len(seen), len(v.there), v.count)
		}
	}
}

// TestPagesCrowded: names whose hashes are all the same are an error, not a search without end.
func TestPagesCrowded(t *testing.T) {
	p := newPages(0, 1)
	p.bits, p.top = maxPageBits, nil // a directory that is as large as it may be, of which one entry is looked at
	pg := &page{by: 1, depth: maxPageBits}
	p.top = make([]*upperFloor, 1)
	*p.entry(7, 1) = pg
	for i := range uint32(fullPage) {
		if err := p.set(7<<32, 0, i+1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.set(7<<32, 0, 99, 1); err != errCrowded {
		t.Errorf("error %v", err)
	}
	p.remove(7<<32, 3, 1)
	if p.has(7<<32, 3) || !p.has(7<<32, 4) || !p.has(7<<32, fullPage) {
		t.Error("another name than the third is gone")
	}
}
