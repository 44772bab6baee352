package proxy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// The wheel does what a sorted list would do, for any order of steps.
func TestWheelAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var w wheel
		now := random.Int64N(10)
		model := map[*Exchange]int64{} // when it is due
		for range 300 {
			switch random.IntN(4) {
			case 0, 1:
				x, due := new(Exchange), now+random.Int64N(3*ringSize)-5
				w.add(x, due, now)
				model[x] = max(due, now+1)
				if due <= now { // at once means at the next tick, the one after now if that is over
					model[x] = max(due, x.due)
				}
			case 2:
				for x := range model {
					w.remove(x)
					w.remove(x) // does no harm
					delete(model, x)
					break
				}
			case 3:
				if random.IntN(3) == 0 {
					now += random.Int64N(2 * ringSize)
				} else {
					now += random.Int64N(5)
				}
				late := w.expire(now, nil)
				for _, x := range late {
					if due, ok := model[x]; !ok || due > now {
						t.Fatalf("seed %d: at %d came what is due at %d (in: %v)", seed, now, due, ok)
					}
					delete(model, x)
				}
				for _, due := range model {
					if due <= now {
						t.Fatalf("seed %d: at %d what is due at %d did not come", seed, now, due)
					}
				}
			}
			tick, ok := w.next()
			if ok != (len(model) > 0) || w.n != len(model) {
				t.Fatalf("seed %d: next says %v and n is %d with %d in", seed, ok, w.n, len(model))
			}
			if ok {
				var dues []int64
				for _, due := range model {
					dues = append(dues, due)
				}
				if tick > slices.Min(dues) {
					t.Fatalf("seed %d: next is %d, but one is due at %d", seed, tick, slices.Min(dues))
				}
			}
		}
	}
}

func TestTicksAreNeverEarly(t *testing.T) {
	for _, at := range []int64{0, 1, 1<<tickBits - 1, 1 << tickBits, 1<<tickBits + 1, 2_000_000_000} {
		if over := timeOf(tickOf(at)); over <= at || over > at+1<<tickBits {
			t.Errorf("%d is over at %d", at, over)
		}
	}
}

// An upstream that is asked for nothing has no ring, which takes 8 KiB.
func TestUnusedWheel(t *testing.T) {
	p := NewProxy("test", "127.0.0.1:53", transport.DNS)
	w := &p.engine.wheel
	_, waits := w.next()
	w.remove(new(Exchange))
	if late := w.expire(5000, nil); waits || len(late) > 0 || w.ring != nil {
		t.Errorf("next %v, late %v, ring %v", waits, late, w.ring != nil)
	}
	x := new(Exchange)
	w.add(x, 5002, 5001)
	if late := w.expire(5002, nil); len(late) != 1 || late[0] != x {
		t.Errorf("late %v, want what was added", late)
	}
}
