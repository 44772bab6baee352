package control

import (
	"math/rand/v2"
	"slices"
	"sort"
)

// sketch counts which keys come most often, in memory of a fixed size. It is a space-saving table with two changes that
// make it quick: a key has but one set of ways to stand in, as in a processor's cache, and one that is not there takes
// the place of the rarest of its set with a chance of one in that one's count plus one (randomized admission: Ben Basat
// et al., 2017). So a key that comes once mostly changes nothing, and one that comes often soon stands there for good.
//
// A count is too much by what the key before it in its place had, and too little by what came before it got the place.
//
// A sketch belongs to one goroutine at a time.
type sketch struct {
	sets  []set
	keys  []byte // width octets for each way: length, and as much of the key as there is room for
	width int
	total uint64 // keys that came
}

// ways is how many keys a set has. Their marks and counts lie in two lines of the processor's cache.
const ways = 8

// set is ways of a sketch. A count of 0 is a free way.
type set struct {
	mark  [ways]uint32 // of the key's hash
	count [ways]uint32
}

// mostCount is where counts are halved, those of all keys.
const mostCount = 1 << 31

// newSketch is a sketch with n keys, a power of two, of at most width-1 octets each; what is longer is cut at its
// begin.
func newSketch(n, width int) *sketch {
	return &sketch{sets: make([]set, n/ways), keys: make([]byte, n*width), width: width}
}

// size is the octets of memory that s takes.
func (s *sketch) size() int { return len(s.keys) + len(s.sets)*ways*8 }

// add counts a key, given its hash.
func (s *sketch) add(hash uint64, key []byte) {
	s.total++
	at := hash >> 32 & uint64(len(s.sets)-1)
	e := &s.sets[at]
	mark := uint32(hash)
	least := 0
	for i := range ways {
		if e.mark[i] == mark && e.count[i] > 0 {
			if e.count[i]++; e.count[i] >= mostCount {
				s.halve()
			}
			return
		}
		if e.count[i] < e.count[least] {
			least = i
		}
	}
	if n := e.count[least]; n > 0 && rand.Uint32N(n+1) != 0 {
		return
	}
	e.mark[least] = mark
	e.count[least]++
	place := s.keys[(int(at)*ways+least)*s.width:][:s.width]
	if rest := len(key) - (s.width - 1); rest > 0 {
		key = key[rest:]
	}
	place[0] = byte(len(key))
	copy(place[1:], key)
}

// halve makes room in the counts. What stands in proportion stays so.
func (s *sketch) halve() {
	s.total /= 2
	for i := range s.sets {
		for j := range ways {
			s.sets[i].count[j] /= 2
		}
	}
}

// counted is a key with how often it came, about.
type counted struct {
	key   string
	count uint64
}

// addTo adds what s has to all.
func (s *sketch) addTo(all map[string]uint64) {
	for i := range s.sets {
		for j, n := range s.sets[i].count {
			if n > 0 {
				place := s.keys[(i*ways+j)*s.width:][:s.width]
				all[string(place[1:1+place[0]])] += uint64(n)
			}
		}
	}
}

// clone is a copy, for who has more time than s may be held.
func (s *sketch) clone() *sketch {
	return &sketch{sets: slices.Clone(s.sets), keys: slices.Clone(s.keys), width: s.width, total: s.total}
}

// reset forgets all.
func (s *sketch) reset() {
	clear(s.sets)
	s.total = 0
}

// most is the n keys of all that came most often, the most frequent first.
func most(all map[string]uint64, n int) []counted {
	out := make([]counted, 0, len(all))
	for k, c := range all {
		out = append(out, counted{k, c})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].count != out[j].count {
			return out[i].count > out[j].count
		}
		return out[i].key < out[j].key
	})
	return out[:min(n, len(out))]
}
