package main

import "time"

// maxWindow is how many queries one client may have in flight: the low eight bits of an
// id name the slot, the high eight count how often it was used.
const maxWindow = 256

// flight holds the queries of one client that wait for their answer. One goroutine owns it.
type flight struct {
	slots []slot
	free  []uint8
}

type slot struct {
	id   uint16
	busy bool
	want outcome
	sent time.Time
}

func newFlight(window int) *flight {
	f := &flight{slots: make([]slot, window), free: make([]uint8, window)}
	for i := range f.slots {
		f.slots[i].id, f.free[i] = uint16(i), uint8(i)
	}
	return f
}

// busy returns how many queries are in flight.
func (f *flight) busy() int { return len(f.slots) - len(f.free) }

// launch takes a free slot, of which there must be one, and returns the id to send.
func (f *flight) launch(want outcome, now time.Time) uint16 {
	last := len(f.free) - 1
	s := &f.slots[f.free[last]]
	f.free = f.free[:last]
	s.id += maxWindow
	s.busy, s.want, s.sent = true, want, now
	return s.id
}

// land frees the slot of the response with this id. ok is false if none waits for it.
func (f *flight) land(id uint16) (s slot, ok bool) {
	i := int(id % maxWindow)
	if i >= len(f.slots) || !f.slots[i].busy || f.slots[i].id != id {
		return slot{}, false
	}
	f.slots[i].busy = false
	f.free = append(f.free, uint8(i))
	return f.slots[i], true
}

// expire gives up what was sent before and returns how many queries that were.
func (f *flight) expire(before time.Time) int {
	lost := 0
	for i := range f.slots {
		if s := &f.slots[i]; s.busy && s.sent.Before(before) {
			s.busy = false
			f.free = append(f.free, uint8(i))
			lost++
		}
	}
	return lost
}
