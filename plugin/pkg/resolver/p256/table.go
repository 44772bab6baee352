package p256

import (
	"encoding/binary"
	"sync"

	"filippo.io/nistec"
)

// A table has the sums of eight multiples of a point, 2^0, 2^32, 2^64 and so on, so that a product with a number of 256
// bits needs 32 doublings and as many additions, in place of 256 and 52 (a comb: C. H. Lim and P. J. Lee, More Flexible
// Exponentiation with Precomputation, 1994). It takes 24 KiB, and as long to make as two signatures to be checked.

const (
	teeth = 8
	span  = 8 * Octets / teeth
)

// table has at each index the sum of the multiples that its bits name.
type table [1 << teeth]nistec.P256Point

func newTable(p *nistec.P256Point) *table {
	t := new(table)
	t[0] = *nistec.NewP256Point()
	q := *p
	for i := range teeth {
		if i > 0 {
			for range span {
				q.Double(&q)
			}
		}
		for j := range 1 << i {
			t[1<<i+j].Add(&t[j], &q)
		}
	}
	return t
}

// multiply makes product the point times a number of big-endian order.
func (t *table) multiply(product *nistec.P256Point, number *[Octets]byte) {
	*product = *nistec.NewP256Point()
	for bit := span - 1; bit >= 0; bit-- {
		product.Double(product)
		index := uint32(0)
		for i := range teeth {
			index |= binary.BigEndian.Uint32(number[Octets-4*(i+1):]) >> bit & 1 << i
		}
		if index != 0 {
			product.Add(product, &t[index])
		}
	}
}

// Tables are for keys that are used much: it takes a few signatures until one pays, and there are so many of them in
// the process. A key without one takes that of a key which was not used since another one wanted it.

const (
	enoughUses = 16
	mostTables = 128
	triedAtAll = 8 // places, by a key that wants one
)

// tables tells which keys have one; next is whose turn it is to be looked at when another key wants one.
var tables struct {
	mu   sync.Mutex
	of   [mostTables]*Key
	next int
}

// multiples is the key's table, nil if it has none yet.
func (k *Key) multiples() *table {
	if t := k.table.Load(); t != nil {
		if !k.used.Load() {
			k.used.Store(true)
		}
		return t
	}
	if k.uses.Add(1) != enoughUses {
		return nil
	}
	defer k.uses.Store(0)
	if !tables.mu.TryLock() { // somebody makes one just now, and this key's time will come
		return nil
	}
	defer tables.mu.Unlock()
	for range triedAtAll {
		at := &tables.of[tables.next]
		tables.next = (tables.next + 1) % mostTables
		if *at != nil && (*at).used.Swap(false) {
			continue
		}
		if *at != nil {
			(*at).table.Store(nil)
		}
		*at = k
		t := newTable(&k.point)
		k.used.Store(true)
		k.table.Store(t)
		return t
	}
	return nil
}
