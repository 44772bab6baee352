package store

import (
	"testing"
	"time"
)

func TestSerial(t *testing.T) {
	var s serial
	at := func(sec int64) time.Time { return time.Unix(sec, 0) }
	expect := func(want uint32) {
		t.Helper()
		if got := s.read(); got != want {
			t.Fatalf("serial %d, want %d", got, want)
		}
	}
	expect(0)
	s.changed(at(1000))
	expect(1000)
	expect(1000) // reading does not raise it
	s.changed(at(1000))
	expect(1001) // two changes in one second differ
	s.changed(at(1000))
	s.changed(at(1000))
	expect(1002) // changes that nobody asked between count as one
	s.changed(at(1500))
	expect(1500)

	// It runs ahead of the clock by so much and then waits, without losing the change.
	for range 200 {
		s.changed(at(1500))
		s.read()
	}
	expect(1500 + maxAhead)
	s.changed(at(1500 + maxAhead))
	expect(1500 + maxAhead + 1)
	s.changed(at(2000))
	expect(2000)
	s.changed(at(1990)) // a clock that goes back does not take the serial back
	expect(2001)

	// One that was years ahead when it gave the serial, and was put right, does not keep changes back for years.
	for n := range uint32(3 * maxAhead) {
		s.changed(at(1000))
		expect(2002 + n)
	}
}
