package proxy

// wheel knows when exchanges are late. Times are ticks since some beginning; the wheel has no clock of its own. It
// is a ring of lists, one for each tick, and exchanges beyond its horizon wait in the ring's last list for
// their next turn. All steps but next cost the same however many exchanges there are. The engine's lock guards it.
type wheel struct {
	ring *[ringSize]*Exchange // nil before the first exchange: most of a thousand upstreams may be asked for nothing
	done int64                // all ticks up to this one are over
	n    int
}

const (
	ringSize = 1024
	tickBits = 22 // a tick is 2^22 ns, 4.2 ms; the horizon 4.3 s
)

// tickOf is the tick during which time t, in nanoseconds, is over for sure.
func tickOf(t int64) int64 { return t>>tickBits + 1 }

// timeOf is when tick is over.
func timeOf(tick int64) int64 { return tick << tickBits }

// links is an exchange's place in a wheel.
type links struct {
	prev, next *Exchange
	due        int64
	slot       int // 1 + its list, 0 if it is in none
}

// add lets x be due at a tick; now is the present one.
func (w *wheel) add(x *Exchange, due, now int64) {
	if w.n == 0 {
		w.done = max(w.done, now-1)
	}
	if w.ring == nil {
		w.ring = new([ringSize]*Exchange)
	}
	x.due = max(due, w.done+1)
	w.link(x)
	w.n++
}

func (w *wheel) link(x *Exchange) {
	i := int(min(x.due, w.done+ringSize-1) % ringSize)
	x.slot = i + 1
	x.prev, x.next = nil, w.ring[i]
	if x.next != nil {
		x.next.prev = x
	}
	w.ring[i] = x
}

// remove takes x out, if it is in.
func (w *wheel) remove(x *Exchange) {
	if x.slot == 0 {
		return
	}
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		w.ring[x.slot-1] = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.links = links{}
	w.n--
}

// expire takes out the exchanges that are due up to the tick now, and appends them to late.
func (w *wheel) expire(now int64, late []*Exchange) []*Exchange {
	for w.n > 0 && w.done < now {
		w.done++
		i := w.done % ringSize
		x := w.ring[i]
		w.ring[i] = nil
		for x != nil {
			next := x.next
			if x.due > w.done {
				w.link(x)
			} else {
				x.links = links{}
				w.n--
				late = append(late, x)
			}
			x = next
		}
	}
	w.done = max(w.done, now)
	return late
}

// next is the first tick at which something may be due; it reports false if nothing waits.
func (w *wheel) next() (tick int64, ok bool) {
	if w.n == 0 {
		return 0, false
	}
	for tick = w.done + 1; w.ring[tick%ringSize] == nil; tick++ {
	}
	return tick, true
}
