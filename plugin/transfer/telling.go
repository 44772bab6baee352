package transfer

import "sync"

// telling is whom is being told of which zone. One that changes again meanwhile is told of once more when that has ended:
// so a secondary that does not answer takes one exchange at a time, however often the zone changes, and holds up no other.
// Its zero value tells nobody; any number of goroutines may use it.
type telling struct {
	mu  sync.Mutex
	now map[told]bool // true: it is to be told again
}

// told is a zone, and one of its secondaries.
type told struct {
	zone string
	to   target
}

// begin reports whether nobody tells a secondary of a zone at the moment; else who does tells again.
func (t *telling) begin(zone string, to target) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, busy := t.now[told{zone, to}]; busy {
		t.now[told{zone, to}] = true
		return false
	}
	put(&t.now, told{zone, to}, false)
	return true
}

// end ends what begin began, unless it reports that the secondary is to be told again.
func (t *telling) end(zone string, to target) (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if again = t.now[told{zone, to}]; again {
		t.now[told{zone, to}] = false
	} else {
		delete(t.now, told{zone, to})
	}
	return again
}
