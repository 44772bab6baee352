package udp

import "time"

// The system's queue of a socket holds a burst. Where more comes all the time than the loop can take, the queue stands:
// what is read has lain there as long as it takes to read all of it. That is seconds where the process has a small part
// of a processor, and then all is answered when nobody waits for it any more. So a queue that stands gets shorter, to
// what the loop takes in a part of a second: the system drops what it would drop anyway, only the rest is in time.
const (
	standsFor   = 500 * time.Millisecond // clients ask again after a second, or a few
	lookedAfter = time.Second            // a loop with a quota may stand still for most of a tenth of that
	burst       = 4 * time.Second        // a queue that stands no longer keeps all: for so long most clients wait
)

// Of octets, the length of a queue: the system counts 768 for a short datagram, on some interfaces more, and lets a
// queue have twice as many as it is told. queueAtLeast is less than what it has by default, queueSpace the length of a
// queue that does not stand.
const (
	queueSpace    = 4 << 20
	queueAtLeast  = 64 << 10
	queuePerQuery = 768 / 2
)

// standing follows whether a socket's queue stands, and how long it is to be. It belongs to the loop.
type standing struct {
	stands  bool      // the last batch was full, so that there may be more
	last    time.Time // when that was read
	began   time.Time // when the queue began to stand
	looked  time.Time // begin of the window
	taken   int       // queries in the window
	shorter int       // the length of the queue in octets; 0 is queueSpace
	changed time.Time // when that was
}

// served notes a batch of n queries, read at now; full says that there may be more. It reports the octets that the
// queue is to have from now on, 0 if that stays as it is.
func (s *standing) served(n int, full bool, now time.Time) (octets int) {
	if !full {
		s.stands = false
		return s.longer(now)
	}
	// The process, or the machine, may have been stopped, which says nothing of what the loop takes.
	stood := s.stands
	if !stood || now.Sub(s.last) >= lookedAfter {
		s.stands, s.began, s.looked, s.taken = true, now, now, 0
	}
	s.taken += n
	s.last = now
	if !stood { // it was empty before
		return s.longer(now)
	}
	window := now.Sub(s.looked)
	if window < lookedAfter {
		return 0
	}
	if s.shorter == 0 && now.Sub(s.began) < burst {
		s.looked, s.taken = now, 0
		return 0
	}
	inTime := int64(s.taken) * int64(standsFor) / int64(window)
	s.looked, s.taken = now, 0
	want := int(min(max(inTime*queuePerQuery, queueAtLeast), queueSpace))
	is := s.shorter
	if is == 0 {
		is = queueSpace
	}
	if want > is*3/4 && want < is*5/4 {
		return 0
	}
	s.shorter, s.changed = want, now
	return want
}

// empty notes that nothing was left: the last batch may have been all there was, full as it is where a client sends so
// many at a time.
func (s *standing) empty() { s.stands = false }

// longer makes a queue that does not stand longer, step by step: after seconds it is as long as it was.
func (s *standing) longer(now time.Time) (octets int) {
	if s.shorter == 0 || now.Sub(s.changed) < lookedAfter {
		return 0
	}
	s.changed = now
	s.shorter *= 2
	if s.shorter >= queueSpace {
		s.shorter = 0
		return queueSpace
	}
	return s.shorter
}
