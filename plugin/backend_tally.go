package plugin

// tally adds up numbers by key. Its zero value is empty. Up to eight keys it needs no map, so that the usual answer
// costs no allocation.
type tally[K comparable] struct {
	keys [8]K
	sums [8]int
	n    int
	many map[K]int // all keys, once there are more than eight
}

// add adds n to the sum of k and returns what it was before.
func (t *tally[K]) add(k K, n int) (before int) {
	if t.many != nil {
		before = t.many[k]
		t.many[k] = before + n
		return before
	}
	for i := range t.keys[:t.n] {
		if t.keys[i] == k {
			before = t.sums[i]
			t.sums[i] += n
			return before
		}
	}
	if t.n < len(t.keys) {
		t.keys[t.n], t.sums[t.n] = k, n
		t.n++
		return 0
	}
	t.many = make(map[K]int, 4*len(t.keys))
	for i, key := range t.keys {
		t.many[key] = t.sums[i]
	}
	t.many[k] = n
	return 0
}

// first reports whether k is met for the first time.
func (t *tally[K]) first(k K) bool { return t.add(k, 1) == 0 }

// of is the sum of k.
func (t *tally[K]) of(k K) int {
	if t.many != nil {
		return t.many[k]
	}
	for i := range t.keys[:t.n] {
		if t.keys[i] == k {
			return t.sums[i]
		}
	}
	return 0
}
