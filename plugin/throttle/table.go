package throttle

import (
	"math"
	"sync"
)

// How many accounts the tables have. One takes 16 octets, so that both tables stay below 32 MiB, however many addresses are
// forged.
const (
	replyAccounts = 1 << 20
	queryAccounts = 1 << 19
)

// account is how an account is kept: it gets rate a second up to burst, and at most the income of a window behind, so that who does not
// stop does not get anything.
type account struct {
	rate, burst int
	window      int // seconds
}

// table has accounts by keys, which are hashes. A full table forgets those that have been silent longest; an account that is
// forgotten begins anew, with its burst.
type table struct{ shards [shards]shard }

const (
	shards = 256
	ways   = 8 // accounts among which one is forgotten
)

type shard struct {
	mu      sync.Mutex
	entries []entry // sets of ways; made at the first use
	size    int
}

// entry is one account. Its balance is in thousandths.
type entry struct {
	key     uint64
	at      uint32 // milliseconds
	balance int32
}

func newTable(accounts int) *table {
	t := new(table)
	for i := range t.shards {
		t.shards[i].size = max(accounts/shards, ways)
	}
	return t
}

// take takes one from the account of key at a time in milliseconds, and reports whether there was none.
func (t *table) take(key uint64, a account, now uint32) (over bool) {
	s := &t.shards[key%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(key)
	if e == nil {
		e = s.begin(key, a, now)
	}
	had, least := a.balance(e, now), max(-int64(a.window)*int64(a.rate)*unit, math.MinInt32)
	e.balance, e.at = int32(max(had-unit, least)), now
	return had < unit
}

// empty reports whether take would find none.
func (t *table) empty(key uint64, a account, now uint32) bool {
	s := &t.shards[key%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(key)
	return e != nil && a.balance(e, now) < unit
}

// unit is one in a balance.
const unit = 1000

// skew is how many milliseconds the times of queries may go back from one to the next: they come in batches, on several sockets.
const skew = 60_000

// balance is what an account holds at a time. The clock goes round in 49 days, so times that lie further back than by the
// skew are times long ago.
func (a *account) balance(e *entry, now uint32) int64 {
	full := int64(a.burst) * unit
	passed := int32(now - e.at)
	switch {
	case passed < -skew:
		return full
	case passed < 0:
		return min(int64(e.balance), full)
	}
	return min(int64(e.balance)+int64(passed)*int64(a.rate), full)
}

// set is the accounts among which that of key is.
func (s *shard) set(key uint64) []entry {
	n := uint64(len(s.entries) / ways)
	return s.entries[key/shards%n*ways:][:ways]
}

// find is the account of key, nil if there is none.
func (s *shard) find(key uint64) *entry {
	if s.entries == nil {
		return nil
	}
	set := s.set(key)
	for i := range set {
		if set[i].key == key && set[i].used() {
			return &set[i]
		}
	}
	return nil
}

// used reports whether an entry is an account: one that was never written has all its balance and no time.
func (e *entry) used() bool { return *e != entry{} }

// begin makes an account for key, in the place of one that was never used, or else of the one that has been silent longest.
func (s *shard) begin(key uint64, a account, now uint32) *entry {
	if s.entries == nil {
		s.entries = make([]entry, s.size/ways*ways)
	}
	set := s.set(key)
	oldest := &set[0]
	for i := range set {
		e := &set[i]
		if !e.used() {
			oldest = e
			break
		}
		if int32(now-e.at) > int32(now-oldest.at) {
			oldest = e
		}
	}
	*oldest = entry{key: key, at: now, balance: int32(a.burst * unit)}
	return oldest
}
