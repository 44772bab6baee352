package udp

import (
	"testing"
	"time"
)

// queueModel is a socket's queue and a loop that takes perSecond of it, but stands still for most of each tenth of a
// second, as one with a small part of a processor does.
type queueModel struct {
	standing
	now       time.Time
	perSecond int
	queued    []time.Time // when each came
	oldest    time.Duration
}

// run has so many queries come in a second, for so many seconds, and reports how many were read.
func (m *queueModel) run(seconds, perSecond int) (read int) {
	m.oldest = 0
	for range seconds * 10 {
		for range perSecond / 10 {
			room := m.shorter
			if room == 0 {
				room = queueSpace
			}
			if len(m.queued) < room/queuePerQuery {
				m.queued = append(m.queued, m.now)
			}
		}
		m.now = m.now.Add(100 * time.Millisecond)
		for left := m.perSecond / 10; left > 0 && len(m.queued) > 0; {
			n := min(left, len(m.queued), batchSize)
			m.oldest = max(m.oldest, m.now.Sub(m.queued[0]))
			m.queued = m.queued[n:]
			read += n
			left -= n
			if octets := m.served(n, n == batchSize, m.now); octets != 0 && octets < queueSpace {
				m.queued = m.queued[max(0, len(m.queued)-octets/queuePerQuery):] // as dropSurplus
			}
		}
	}
	return read
}

func TestStanding(t *testing.T) {
	for _, perSecond := range []int{640, 3200, 9600} {
		m := &queueModel{perSecond: perSecond, now: time.Unix(0, 0)}
		m.run(10, perSecond*9/10)
		if m.shorter != 0 {
			t.Errorf("%d/s: %d octets where all is taken", perSecond, m.shorter)
		}
		if m.run(3, 4*perSecond); m.shorter != 0 {
			t.Errorf("%d/s: %d octets in a burst", perSecond, m.shorter)
		}
		m.run(4, 4*perSecond)
		if read := m.run(30, 4*perSecond); read < 30*perSecond*9/10 || m.oldest > time.Second {
			t.Errorf("%d/s: %d were read of four times as many, which were up to %s old", perSecond, read, m.oldest)
		}
		m.run(10, perSecond/10)
		if m.shorter != 0 {
			t.Errorf("%d/s: %d octets when the load was over", perSecond, m.shorter)
		}
	}
}

// A loop that takes much has the longest queue.
func TestStandingOfMany(t *testing.T) {
	m := &queueModel{perSecond: 40_000, now: time.Unix(0, 0)}
	if m.run(10, 60_000); m.shorter != 0 {
		t.Errorf("%d octets", m.shorter)
	}
}

// A client that sends a full batch at a time makes no queue stand; one that stood before becomes as long as it was.
func TestStandingOfFullBatches(t *testing.T) {
	now := time.Unix(0, 0)
	for _, was := range []int{0, queueAtLeast} {
		s := standing{shorter: was}
		for range 600 {
			now = now.Add(20 * time.Millisecond)
			if octets := s.served(batchSize, true, now); octets != 0 && octets <= was {
				t.Fatalf("%d octets", octets)
			}
			s.empty()
		}
		if s.shorter != 0 {
			t.Errorf("%d octets in the end", s.shorter)
		}
	}
}

// A loop that was stopped while its queue was not empty finds it as long as it was.
func TestStandingStill(t *testing.T) {
	m := &queueModel{perSecond: 3200, now: time.Unix(0, 0)}
	m.run(5, 3200)
	m.served(batchSize, true, m.now)
	for range 10 {
		if octets := m.served(batchSize, true, m.now.Add(time.Minute)); octets != 0 {
			t.Fatalf("%d octets", octets)
		}
	}
}
