package cache_test

import (
	"hash/fnv"
	"strconv"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/cache"
)

func TestAddGetRemove(t *testing.T) {
	c := cache.New[string](1024)
	if got, ok := c.Get(1); ok || got != "" {
		t.Errorf("empty: got %q", got)
	}
	for key := range uint64(4) {
		if c.Add(key*256, strconv.Itoa(int(key))) {
			t.Errorf("adding %d evicted another value", key)
		}
	}
	c.Add(1, "other shard")
	for key := range uint64(4) {
		if got, ok := c.Get(key * 256); !ok || got != strconv.Itoa(int(key)) {
			t.Errorf("%d: got %q, %t", key, got, ok)
		}
	}
	if got := c.Len(); got != 5 {
		t.Errorf("got length %d, want 5", got)
	}
	c.Remove(256)
	c.Remove(4711)
	if got, ok := c.Get(256); ok || c.Len() != 4 {
		t.Errorf("removed: got %q, length %d", got, c.Len())
	}
}

func TestFullShardEvictsOne(t *testing.T) {
	c := cache.New[int](4 * 256)
	for key := range uint64(4) {
		c.Add(key*256, int(key))
	}
	// Overwriting never evicts.
	if c.Add(256, 100) || c.Len() != 4 {
		t.Errorf("overwriting evicted; length %d", c.Len())
	}
	if got, _ := c.Get(256); got != 100 {
		t.Errorf("got %d, want the new value", got)
	}
	// Another shard has room.
	if c.Add(1, 1) {
		t.Error("evicted from a shard that has room")
	}
	for key := uint64(4); key < 20; key++ {
		if !c.Add(key*256, int(key)) || c.Len() != 5 {
			t.Errorf("adding %d did not evict; length %d", key, c.Len())
		}
		if _, ok := c.Get(key * 256); !ok {
			t.Errorf("%d itself is gone", key)
		}
	}
}

func TestSize(t *testing.T) {
	for size, perShard := range map[int]uint64{-1: 4, 0: 4, 100: 4, 1279: 4, 1280: 5, 10000: 39} {
		c := cache.New[struct{}](size)
		for key := range perShard {
			if c.Add(key*256, struct{}{}) {
				t.Errorf("size %d: evicted before %d values", size, perShard)
			}
		}
		if !c.Add(perShard*256, struct{}{}) {
			t.Errorf("size %d: took more than %d values", size, perShard)
		}
	}
}

func TestWalk(t *testing.T) {
	c := cache.New[int](10240)
	for key := range uint64(1000) {
		c.Add(key, int(key))
	}
	sum := 0
	c.Walk(func(items map[uint64]int, key uint64) bool {
		sum += items[key]
		if key%2 == 0 {
			delete(items, key)
		} else {
			items[key] = -1
		}
		return true
	})
	if want := 999 * 1000 / 2; sum != want {
		t.Errorf("got sum %d, want %d", sum, want)
	}
	if got := c.Len(); got != 500 {
		t.Errorf("got length %d, want 500", got)
	}
	if got, _ := c.Get(1); got != -1 {
		t.Errorf("got %d, want what the walk stored", got)
	}
}

func TestWalkEndsAShardOnly(t *testing.T) {
	c := cache.New[int](10240)
	for key := range uint64(1000) {
		c.Add(key, 0)
	}
	calls := 0
	c.Walk(func(map[uint64]int, uint64) bool {
		calls++
		return false
	})
	if calls != 256 {
		t.Errorf("got %d calls, want one for each of the 256 shards", calls)
	}
}

func TestHash(t *testing.T) {
	for _, s := range []string{"", "a", "example.org.", "\x00\xff"} {
		h := fnv.New64()
		_, _ = h.Write([]byte(s))
		if got, want := cache.Hash([]byte(s)), h.Sum64(); got != want {
			t.Errorf("%q: got %x, want %x", s, got, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	c := cache.New[uint64](1024)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for key := range uint64(5000) {
				c.Add(key, key)
				if got, ok := c.Get(key); ok && got != key {
					t.Errorf("%d: got %d", key, got)
				}
				c.Remove(key / 2)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			if n := c.Len(); n > 1024 {
				t.Errorf("got length %d, more than the cache holds", n)
			}
			c.Walk(func(items map[uint64]uint64, key uint64) bool { return items[key] == key })
		}
	})
	wg.Wait()
}

func BenchmarkGet(b *testing.B) {
	c := cache.New[*int](10240)
	for key := range uint64(10240) {
		c.Add(key, new(int))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for key := uint64(0); pb.Next(); key++ {
			c.Get(key % 10240)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	c := cache.New[*int](10240)
	el := new(int)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for key := uint64(0); pb.Next(); key++ {
			c.Add(key*7919, el)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	name := []byte("www.example.org.")
	b.ReportAllocs()
	for b.Loop() {
		cache.Hash(name)
	}
}
