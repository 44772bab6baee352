// Package uniq runs functions once each, under a key, however often they are registered. Plugins that stand in many
// server blocks but open one listener for the whole process keep its start under the listener's address. Any number
// of goroutines may share a U. Start at U.Set.
package uniq

import (
	"slices"
	"sync"
)

// U holds functions by key. Any number of goroutines may use it at the same time.
type U struct {
	mu    sync.Mutex
	items []*item // in the order of registration
}

// item is one registered function. pending is guarded by U.mu.
type item struct {
	key     string
	f       func() error
	pending bool
}

// New returns an empty U.
func New() *U { return new(U) }

// Set registers f under key, to be run by the next ForEach. If the key is in use, run or not, nothing changes.
func (u *U) Set(key string, f func() error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.index(key) < 0 {
		u.items = append(u.items, &item{key: key, f: f, pending: true})
	}
}

// Unset forgets key, so that it can be set again. A function that has not been run never will be.
func (u *U) Unset(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := u.index(key); i >= 0 {
		u.items[i].pending = false
		u.items = slices.Delete(u.items, i, i+1)
	}
}

// ForEach runs every function that has not been run yet, in the order of their registration, and returns the
// first error. A function that fails does not keep the others from running, and has been run: only Unset and Set make
// it run again. The functions may call Set and Unset; what they set is left to the next ForEach.
func (u *U) ForEach() error {
	u.mu.Lock()
	items := slices.Clone(u.items)
	u.mu.Unlock()

	var first error
	for _, it := range items {
		if !u.take(it) {
			continue
		}
		if err := it.f(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// take tells whether it is the caller who must run the item.
func (u *U) take(it *item) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := it.pending
	it.pending = false
	return was
}

// index returns the place of key in u.items, -1 if it has none. u.mu must be held.
func (u *U) index(key string) int {
	return slices.IndexFunc(u.items, func(it *item) bool { return it.key == key })
}
